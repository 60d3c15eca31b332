// The power is cut while a backup takes the place of a store that a killed process left, in another
// boot: the old store is there, with all that was flushed, or the new one and the old one kept.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "powercut_day.h"
#include "report/log.h"
#include "store/backup.h"
#include "store/copy.h"
#include "store/partial.h"

enum { RESTORE_IMAGES = 120, FLUSHED = 12, LATER = 7, IN_BACKUP = 3 };

static const char *path_of(const char *name)
{
    static char paths[4][600];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
    return path;
}

static void append(Engine *engine, const char *session, size_t count)
{
    for (size_t i = 0; i < count; i++)
        engine_append_text(engine, session, "text", NULL);
}

static uint64_t count_entries(const char *directory, const char *session)
{
    Engine *engine = day_engine(DAY_SYNC, directory, "after the cut");
    CHECK_CLEAN(engine);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *response;
    request.session_id = (char *)(uintptr_t)session;
    Error error = engine_call(engine, METHOD_GET_SESSION, &request, NULL, &response);
    uint64_t count = error ? 0 : response->session->entry_count;
    CHECK(error == ERROR_NONE || error == ERROR_SESSION_NOT_FOUND);
    engine_free(response);
    engine_close(engine);
    return count;
}

static void make_backup(IdText session)
{
    Engine *engine = day_engine(DAY_SYNC, path_of("original"), "a boot");
    engine_new_session(engine, NULL, session);
    append(engine, session, IN_BACKUP);
    engine_close(engine);
}

// A relaxed store, flushed once; and its process dies.
static void leave_store(IdText session)
{
    record_begin(path_of("day"));
    Engine *engine = day_engine_unhurried(path_of("day/store"), "a boot");
    engine_new_session(engine, NULL, session);
    append(engine, session, FLUSHED);
    CHECK_EQ(store_flush(engine_store(engine), NULL), ERROR_NONE);
    append(engine, session, LATER);
    record_kill();
    engine_close(engine);
    record_revive();
}

// As `tine restore-backup` does it.
static void restore(void)
{
    StoreLock lock;
    StorePath partial;
    ErrorDetail detail = {{0}};
    const char *store = path_of("day/store");
    CHECK_EQ(store_files_lock(store, "", &detail, &lock), 0);
    CHECK_EQ(partial_path(store_path(store, "restore").text, &detail, &partial), 0);
    StoreCopy copy = {.from = path_of("original"), .to = partial.text};
    CHECK_EQ(store_copy(&copy, &detail), ERROR_NONE);
    CHECK_EQ(backup_replace(store, partial.text, path_of("day/store/kept"), &detail), 0);
    store_files_unlock(&lock);
}

static void check_image(const char *image, const char *session, const char *backup)
{
    char store[600], kept[620];
    snprintf(store, sizeof(store), "%s/store", image);
    snprintf(kept, sizeof(kept), "%s/kept", store);
    uint64_t count = count_entries(store, session);
    if (count == 0) {
        CHECK_EQ(count_entries(store, backup), IN_BACKUP);
        count = count_entries(kept, session);
    }
    CHECK(count >= FLUSHED && count <= FLUSHED + LATER); // what was not flushed may be there, too
}

TEST(after_a_power_cut_in_a_restore_the_old_store_is_there)
{
    IdText session, backup;
    Recording recording;
    Random random;
    log_configure(LOG_OFF, STDERR_FILENO);
    CHECK_EQ(mkdir(path_of("day"), 0700), 0);
    make_backup(backup);
    leave_store(session);
    size_t begun = record_count();
    restore();
    record_end(&recording);
    random_seed(&random, test_seed());
    Disk *disk = disk_new(&recording);
    size_t span = recording.count - begun, image_count = test_scaled(RESTORE_IMAGES);
    for (size_t i = 0; i < image_count; i++) {
        disk_advance(disk, begun + (i + 1) * span / image_count);
        disk_write_image(disk, &random, path_of("image"));
        check_image(path_of("image"), session, backup);
    }
    disk_free(disk);
    record_free(&recording);
}
