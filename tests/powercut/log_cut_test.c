// The power is cut at moments of the log that a day hardly meets.

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "kv/kv.h"
#include "powercut_day.h"
#include "report/log.h"
#include "unpinned.h"

enum { LOG_IMAGES = 20, IN_LOG = 3 };

static const char *path_of(const char *name)
{
    static char paths[4][600];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
    return path;
}

static void check_image(const char *session, uint64_t count)
{
    Engine *engine = day_engine(DAY_SYNC, path_of("image/store"), "after the cut");
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *response;
    request.session_id = (char *)(uintptr_t)session;
    CHECK_CLEAN(engine);
    CHECK_EQ(engine_call(engine, METHOD_GET_SESSION, &request, NULL, &response), ERROR_NONE);
    CHECK_EQ(response->session->entry_count, count);
    engine_free(response);
    engine_close(engine);
}

// After the cut the session has `count` messages.
static void check_cut(Disk *disk, size_t cut, const char *session, uint64_t count)
{
    Random random;
    random_seed(&random, test_seed());
    disk_advance(disk, cut);
    for (int i = 0; i < LOG_IMAGES; i++) {
        disk_write_image(disk, &random, path_of("image"));
        check_image(session, count);
    }
}

// The next process flushes the name, or the power takes the whole log.
TEST(the_directory_of_a_log_that_a_dead_process_made_is_flushed)
{
    IdText session;
    Recording recording;
    log_configure(LOG_OFF, STDERR_FILENO);
    CHECK_EQ(mkdir(path_of("day"), 0700), 0);
    engine_close(day_engine(DAY_SYNC, path_of("day/store"), "a boot"));
    kv_remove_log(path_of("day/store"));

    record_begin(path_of("day"));
    CHECK_EQ(mkdir(path_of("day/store/log"), 0700), 0); // and the process dies
    Engine *engine = day_engine(DAY_SYNC, path_of("day/store"), "a boot");
    engine_new_session(engine, NULL, session);
    engine_append_text(engine, session, "text", NULL);
    size_t cut = record_count();
    engine_close(engine);
    record_end(&recording);
    Disk *disk = disk_new(&recording);
    check_cut(disk, cut, session, 1);
    disk_free(disk);
    record_free(&recording);
}

// LMDB refuses what the log has already.
static void append_refused(Engine *engine, const char *session)
{
    CrashRecord record = {.op = CRASH_APPEND, .number = 1};
    snprintf(record.operation_id, sizeof(record.operation_id), "refused");
    snprintf(record.session, sizeof(record.session), "%s", session);
    commit_fault();
    CHECK_EQ(crash_call(engine, &record), ERROR_STORE_FULL);
}

TEST(a_write_that_was_refused_does_not_come_back)
{
    IdText session;
    Recording recording;
    log_configure(LOG_OFF, STDERR_FILENO);
    CHECK_EQ(mkdir(path_of("day"), 0700), 0);
    record_begin(path_of("day"));
    Engine *engine = day_engine_unhurried(path_of("day/store"), "a boot");
    engine_new_session(engine, NULL, session);
    for (int i = 0; i < IN_LOG; i++)
        engine_append_text(engine, session, "text", NULL);
    CHECK_EQ(store_flush(engine_store(engine), NULL), ERROR_NONE);
    append_refused(engine, session);
    size_t refused = record_count();
    engine_append_text(engine, session, "text", NULL);
    CHECK_EQ(store_flush(engine_store(engine), NULL), ERROR_NONE);
    size_t later = record_count();
    engine_close(engine);
    record_end(&recording);
    Disk *disk = disk_new(&recording);
    check_cut(disk, refused, session, IN_LOG);
    check_cut(disk, later, session, IN_LOG + 1);
    disk_free(disk);
    record_free(&recording);
}
