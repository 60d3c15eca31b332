// A disk that reports an error: in a flush or in the file that says what was flushed, once or for
// ever. The kernel forgets pages that it could not write, so nothing that was done since the last
// flush counts, however well a second one goes: the store closes itself, and opens as it was then.

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "disk.h"
#include "engine_call.h"
#include "report/log.h"

enum { KEPT = 40, LATER = 25, OVERWRITTEN = 60 };

typedef struct Scene {
    Engine *engine;
    IdText session;
    char log[600];
    char instance[64];
} Scene;

static Error open_engine(Scene *scene, unsigned flush_ms, const char *boot_id)
{
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .map_bytes = (size_t)1 << 28,
                                 .flush_ms = flush_ms,
                                 .boot_id = boot_id,
                             }};
    return engine_open(&options, NULL, &scene->engine);
}

static Error append(Scene *scene, bool is_sync)
{
    static char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_USER;
    message.text = text;
    request.session_id = scene->session;
    request.message = &message;
    return is_sync ? engine_call_synced(scene->engine, METHOD_APPEND_MESSAGE, &request)
                   : engine_call(scene->engine, METHOD_APPEND_MESSAGE, &request, NULL, NULL);
}

static void append_ok(Scene *scene, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(append(scene, /* is_sync= */ false), ERROR_NONE);
}

static Error get_entry_count(Scene *scene, uint64_t *out)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *response;
    request.session_id = scene->session;
    Error error = engine_call(scene->engine, METHOD_GET_SESSION, &request, NULL, &response);
    if (!error) *out = response->session->entry_count;
    engine_free(response);
    return error;
}

static Error get_stats(Scene *scene)
{
    StatsRequest request = STATS_REQUEST__INIT;
    return engine_call(scene->engine, METHOD_STATS, &request, NULL, NULL);
}

// A relaxed store with entries that are on the disk.
static void scene_open(Scene *scene, unsigned flush_ms)
{
    *scene = (Scene){.engine = NULL};
    snprintf(scene->log, sizeof(scene->log), "%s/log", test_dir());
    int log = open(scene->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(log >= 0);
    log_configure(LOG_ERROR, log);
    CHECK_EQ(open_engine(scene, flush_ms, "one"), ERROR_NONE);
    engine_new_session(scene->engine, NULL, scene->session);
    append_ok(scene, KEPT - 1);
    CHECK_EQ(append(scene, /* is_sync= */ true), ERROR_NONE);
    snprintf(scene->instance, sizeof(scene->instance), "%s",
             store_instance_id(engine_store(scene->engine)));
}

static size_t logged_count(const Scene *scene, const char *text)
{
    static char all[1 << 16];
    int file = open(scene->log, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, all, sizeof(all) - 1);
    close(file);
    CHECK(size >= 0);
    all[size] = '\0';
    size_t count = 0;
    for (const char *at = all; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void expect_closed(Scene *scene)
{
    uint64_t count;
    CHECK_EQ(append(scene, /* is_sync= */ false), ERROR_CLOSED);
    CHECK_EQ(append(scene, /* is_sync= */ true), ERROR_CLOSED);
    CHECK_EQ(get_entry_count(scene, &count), ERROR_CLOSED);
    CHECK_EQ(get_stats(scene), ERROR_CLOSED);
    CHECK_EQ(logged_count(scene, "the store cannot be flushed"), 1);
}

static uint64_t reopened_with(Scene *scene, unsigned flush_ms, const char *boot_id)
{
    uint64_t count;
    CHECK_EQ(open_engine(scene, flush_ms, boot_id), ERROR_NONE);
    CHECK_CLEAN(scene->engine);
    CHECK_EQ(get_entry_count(scene, &count), ERROR_NONE);
    return count;
}

// As it was at its last flush, and it goes on: in this boot and in the next one.
static void expect_last_flush(Scene *scene)
{
    CHECK_EQ(reopened_with(scene, FLUSH_MS_MAX, "one"), KEPT);
    const char *instance = store_instance_id(engine_store(scene->engine));
    CHECK(strcmp(instance, scene->instance) != 0); // watchers hear that it was taken back
    append_ok(scene, OVERWRITTEN);
    CHECK_CLEAN(scene->engine);
    engine_close(scene->engine);
    CHECK_EQ(reopened_with(scene, FLUSH_MS_MAX, "two"), KEPT + OVERWRITTEN);
    engine_close(scene->engine);
}

static void fail_in_a_sync_request(int code, bool is_for_ever)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    disk_keep(test_dir());
    append_ok(&scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", code, 1, is_for_ever});
    CHECK_EQ(append(&scene, /* is_sync= */ true), ERROR_IO);
    expect_closed(&scene);
    engine_close(scene.engine);
    disk_mend();
    disk_lose(test_dir());
    expect_last_flush(&scene);
}

TEST(a_flush_that_fails_once_is_not_repeated_and_called_good)
{
    fail_in_a_sync_request(EIO, /* is_for_ever= */ false);
}

TEST(a_disk_that_fails_from_now_on)
{
    fail_in_a_sync_request(EIO, /* is_for_ever= */ true);
}

TEST(a_disk_that_finds_itself_full_in_a_flush)
{
    fail_in_a_sync_request(ENOSPC, /* is_for_ever= */ false);
}

// Nobody asked for the flush: the next call, whichever it is, hears of it.
TEST(a_flush_that_fails_behind_everybodys_back)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    engine_close(scene.engine);
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 1, "one"), KEPT);
    disk_keep(test_dir());
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    append_ok(&scene, 1);
    uint64_t count;
    while (!disk_has_failed())
        sched_yield();
    while (get_entry_count(&scene, &count) == ERROR_NONE)
        sched_yield();
    expect_closed(&scene);
    engine_close(scene.engine);
    disk_mend();
    disk_lose(test_dir());
    expect_last_flush(&scene);
}

// data.mdb was flushed, only that was not noted: nothing is lost to a process, and to the next boot
// at most what was not acknowledged as flushed.
static void fail_in_the_slot(DiskCall call, int code, bool is_for_ever, const char *boot_id)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    append_ok(&scene, LATER);
    disk_fail((DiskFault){call, "flushed.mdb", code, 1, is_for_ever});
    CHECK_EQ(append(&scene, /* is_sync= */ true), ERROR_IO);
    expect_closed(&scene);
    engine_close(scene.engine);
    disk_mend();
    uint64_t count = reopened_with(&scene, FLUSH_MS_MAX, boot_id);
    bool is_same_boot = strcmp(boot_id, "one") == 0;
    CHECK_EQ(count, is_same_boot ? KEPT + LATER + 1 : KEPT);
    append_ok(&scene, OVERWRITTEN);
    CHECK_CLEAN(scene.engine);
    engine_close(scene.engine);
    CHECK_EQ(reopened_with(&scene, FLUSH_MS_MAX, "three"), count + OVERWRITTEN);
    engine_close(scene.engine);
}

TEST(the_note_of_a_flush_that_fails)
{
    fail_in_the_slot(DISK_FLUSH, EIO, /* is_for_ever= */ false, "one");
}

TEST(the_note_of_a_flush_that_fails_and_then_the_machine)
{
    fail_in_the_slot(DISK_FLUSH, EIO, /* is_for_ever= */ true, "two");
}

TEST(the_note_of_a_flush_that_cannot_be_written)
{
    fail_in_the_slot(DISK_WRITE, EIO, /* is_for_ever= */ true, "one");
}

TEST(the_note_of_a_flush_that_finds_no_room)
{
    fail_in_the_slot(DISK_WRITE, ENOSPC, /* is_for_ever= */ false, "two");
}

TEST(the_last_flush_fails)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    disk_keep(test_dir());
    append_ok(&scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    engine_close(scene.engine);
    CHECK_EQ(logged_count(&scene, "the store cannot be flushed"), 1);
    disk_mend();
    disk_lose(test_dir());
    expect_last_flush(&scene);
}

// That the store was closed may not be on the disk, and if the other mode believed it, the next
// boot would take its commits back to the last flush. So it must have been said again.
TEST(the_last_note_fails_and_a_store_that_is_no_longer_relaxed_goes_on)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    append_ok(&scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ true});
    engine_close(scene.engine);
    disk_mend();
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(open_engine(&scene, /* flush_ms= */ 0, "one"), ERROR_IO);
    CHECK(disk_has_failed()); // it was about to say so
    disk_mend();
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 0, "one"), KEPT + LATER);
    append_ok(&scene, OVERWRITTEN);
    engine_close(scene.engine);
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 0, "two"), KEPT + LATER + OVERWRITTEN);
    engine_close(scene.engine);
}

// What a process that died left unflushed is flushed when the store is opened; if that fails, the
// next opening has no better a view of it.
TEST(the_first_flush_after_a_death_fails)
{
    Scene scene;
    int described[2];
    CHECK_EQ(pipe(described), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        scene_open(&scene, FLUSH_MS_MAX);
        append_ok(&scene, LATER);
        CHECK_EQ(write(described[1], &scene, sizeof(scene)), sizeof(scene));
        pause();
    }
    CHECK_EQ(read(described[0], &scene, sizeof(scene)), sizeof(scene));
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    log_configure(LOG_OFF, STDERR_FILENO);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(open_engine(&scene, FLUSH_MS_MAX, "one"), ERROR_IO);
    disk_mend();
    expect_last_flush(&scene);
}

// The file that notes flushes, and its name, are on the disk before it is used: also when it is not
// who made it that uses it.
TEST(a_note_file_that_could_not_be_flushed_is_made_anew)
{
    Scene scene = {.engine = NULL};
    log_configure(LOG_OFF, STDERR_FILENO);
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(open_engine(&scene, FLUSH_MS_MAX, "one"), ERROR_IO);
    // The second is that of the first note, if the file's own was asked for again.
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 2, /* is_for_ever= */ false});
    CHECK_EQ(open_engine(&scene, FLUSH_MS_MAX, "one"), ERROR_IO);
    CHECK(disk_has_failed());
    disk_mend();
    CHECK_EQ(open_engine(&scene, FLUSH_MS_MAX, "one"), ERROR_NONE);
    engine_close(scene.engine);
}

// In the other mode a commit's own flush fails: it is not acknowledged, and what was is there.
TEST(a_commit_whose_flush_fails_closes_a_store_that_is_not_relaxed)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    engine_close(scene.engine);
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 0, "one"), KEPT);
    append_ok(&scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(append(&scene, /* is_sync= */ false), ERROR_IO);
    CHECK_EQ(append(&scene, /* is_sync= */ false), ERROR_CLOSED);
    engine_close(scene.engine);
    disk_mend();
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 0, "one"), KEPT + LATER);
    append_ok(&scene, OVERWRITTEN);
    CHECK_CLEAN(scene.engine);
    engine_close(scene.engine);
}

// A process that died may have left a commit that nobody was told of. What is told of it from now
// on must be on the disk.
TEST(a_store_that_is_not_relaxed_is_flushed_when_it_is_opened)
{
    Scene scene;
    scene_open(&scene, FLUSH_MS_MAX);
    engine_close(scene.engine);
    log_configure(LOG_OFF, STDERR_FILENO);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(open_engine(&scene, /* flush_ms= */ 0, "one"), ERROR_IO);
    CHECK(disk_has_failed());
    disk_mend();
    CHECK_EQ(reopened_with(&scene, /* flush_ms= */ 0, "one"), KEPT);
    engine_close(scene.engine);
}
