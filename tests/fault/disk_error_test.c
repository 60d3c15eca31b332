// A disk that reports an error about data.mdb or about the file that notes its flushes, once or for
// ever. The kernel forgets pages that it could not write, so the store closes itself, opens as it
// was at the last flush, and gets the rest from its log.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "disk_scene.h"
#include "report/log.h"

enum { LATER = 25 };

static const char FLUSH_LINE[] = "msg=\"the store cannot be flushed\"";

// A relaxed store that was taken back may lack the end of its log, so it has a new instance id.
static void expect_after(const DiskScene *scene, const char *boot_id, SceneLoss loss,
                         bool is_taken_back)
{
    bool is_relaxed = scene->options.store.flush_ms > 0;
    scene_expect_after(scene,
                       (SceneAfter){boot_id, loss, scene->count, is_taken_back && is_relaxed});
}

// ---- Flushes of data.mdb ----

// Of a store whose data.mdb is flushed in the background all the time; its log is not, if it is
// relaxed.
static DiskScene *scene_flushing(unsigned flush_ms)
{
    DiskScene *scene = scene_open(flush_ms);
    scene_reopen(scene, flush_ms, /* flush_data_ms= */ 1);
    return scene;
}

// Copies are opened without flushes in the background, so that they are as they were kept.
static void stop_flushing(DiskScene *scene)
{
    disk_mend();
    scene->options.store.flush_data_ms = FLUSH_MS_MAX;
}

static void fail_in_the_background(unsigned flush_ms, int code, bool is_for_ever)
{
    DiskScene *scene = scene_flushing(flush_ms);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", code, 1, is_for_ever});
    scene_append_until_closed(scene);
    scene_expect_closed(scene, FLUSH_LINE);
    stop_flushing(scene);
    expect_after(scene, "one", LOSES_NOTHING, /* is_taken_back= */ true);
    expect_after(scene, "one", LOSES_DATA, /* is_taken_back= */ true);
    expect_after(scene, "two", LOSES_NOTHING, /* is_taken_back= */ true);
    expect_after(scene, "two", LOSES_DATA, /* is_taken_back= */ true);
    scene_close(scene);
}

TEST(a_flush_that_fails_once_is_not_repeated_and_called_good)
{
    fail_in_the_background(/* flush_ms= */ 0, EIO, /* is_for_ever= */ false);
    fail_in_the_background(FLUSH_MS_MAX, EIO, /* is_for_ever= */ false);
}

TEST(a_disk_that_fails_from_now_on)
{
    fail_in_the_background(/* flush_ms= */ 0, EIO, /* is_for_ever= */ true);
    fail_in_the_background(FLUSH_MS_MAX, EIO, /* is_for_ever= */ true);
}

TEST(a_disk_that_finds_itself_full_in_a_flush)
{
    fail_in_the_background(/* flush_ms= */ 0, ENOSPC, /* is_for_ever= */ false);
    fail_in_the_background(FLUSH_MS_MAX, ENOSPC, /* is_for_ever= */ false);
}

// Not a copy: the same files, closed by the process that met the failure.
static void reopen_after_a_failure(unsigned flush_ms)
{
    DiskScene *scene = scene_flushing(flush_ms);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    scene_append_until_closed(scene);
    stop_flushing(scene);
    engine_close(scene->engine);
    disk_lose_data(scene->directory);
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_NONE);
    scene_expect_texts(scene, scene->engine, scene->count);
    bool is_renewed = strcmp(store_instance_id(engine_store(scene->engine)), scene->instance) != 0;
    CHECK_EQ(is_renewed, flush_ms > 0); // watchers hear that it was taken back
    scene_append_ok(scene, LATER);
    scene_reopen(scene, flush_ms, FLUSH_MS_MAX);
    scene_close(scene);
}

TEST(a_store_that_closed_itself_has_all_when_it_is_opened_again)
{
    reopen_after_a_failure(/* flush_ms= */ 0);
    reopen_after_a_failure(FLUSH_MS_MAX);
}

static void fail_in_the_last_flush(unsigned flush_ms)
{
    DiskScene *scene = scene_open(flush_ms);
    scene_append_ok(scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    engine_close(scene->engine);
    scene->engine = NULL;
    CHECK_EQ(scene_logged(scene, FLUSH_LINE), 1);
    disk_mend();
    expect_after(scene, "one", LOSES_DATA, /* is_taken_back= */ true);
    expect_after(scene, "two", LOSES_DATA, /* is_taken_back= */ true);
    scene_close(scene);
}

TEST(the_last_flush_fails)
{
    fail_in_the_last_flush(/* flush_ms= */ 0);
    fail_in_the_last_flush(FLUSH_MS_MAX);
}

// What a process that died left unflushed is flushed when the store is opened; if that fails, the
// next opening has no better a view of it.
static void fail_in_the_first_flush(unsigned flush_ms)
{
    int described[2];
    CHECK_EQ(pipe(described), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        DiskScene *made = scene_open(flush_ms);
        scene_append_ok(made, LATER);
        CHECK_EQ(write(described[1], made, sizeof(*made)), sizeof(*made));
        pause();
    }
    DiskScene *scene = calloc(1, sizeof(DiskScene));
    CHECK(scene != NULL);
    size_t got = 0;
    while (got < sizeof(*scene)) {
        ssize_t size = read(described[0], (char *)scene + got, sizeof(*scene) - got);
        CHECK(size > 0);
        got += (size_t)size;
    }
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    scene->options.store.directory = scene->directory;
    scene->engine = NULL;
    log_configure(LOG_OFF, STDERR_FILENO);
    disk_fail((DiskFault){DISK_FLUSH, "data.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_IO);
    CHECK(disk_has_failed());
    disk_mend();
    expect_after(scene, "one", LOSES_NOTHING, /* is_taken_back= */ true);
    expect_after(scene, "two", LOSES_NOTHING, /* is_taken_back= */ true);
    scene->engine = NULL;
    scene_close(scene);
}

TEST(the_first_flush_after_a_death_fails)
{
    fail_in_the_first_flush(FLUSH_MS_MAX);
}

// A process that died may have left a commit that nobody was told of. What is told of it from now
// on must be on the disk.
TEST(the_first_flush_after_a_death_fails_in_a_store_that_is_not_relaxed)
{
    fail_in_the_first_flush(/* flush_ms= */ 0);
}

// ---- The notes of flushes ----

// data.mdb was flushed, only that was not noted: nothing is in doubt in this boot, and in another
// one the store is as it was at the note before, with all that the log has.
static void fail_in_a_note(unsigned flush_ms, DiskCall call, int code, bool is_for_ever)
{
    DiskScene *scene = scene_flushing(flush_ms);
    disk_fail((DiskFault){call, "flushed.mdb", code, 1, is_for_ever});
    scene_append_until_closed(scene);
    scene_expect_closed(scene, FLUSH_LINE);
    stop_flushing(scene);
    expect_after(scene, "one", LOSES_NOTHING, /* is_taken_back= */ false);
    expect_after(scene, "two", LOSES_NOTHING, /* is_taken_back= */ true);
    scene_close(scene);
}

static void fail_in_notes(DiskCall call, int code, bool is_for_ever)
{
    fail_in_a_note(/* flush_ms= */ 0, call, code, is_for_ever);
    fail_in_a_note(FLUSH_MS_MAX, call, code, is_for_ever);
}

TEST(the_note_of_a_flush_that_fails)
{
    fail_in_notes(DISK_FLUSH, EIO, /* is_for_ever= */ false);
}

TEST(the_note_of_a_flush_that_fails_from_now_on)
{
    fail_in_notes(DISK_FLUSH, EIO, /* is_for_ever= */ true);
}

TEST(the_note_of_a_flush_that_cannot_be_written)
{
    fail_in_notes(DISK_WRITE, EIO, /* is_for_ever= */ true);
}

TEST(the_note_of_a_flush_that_finds_no_room)
{
    fail_in_notes(DISK_WRITE, ENOSPC, /* is_for_ever= */ false);
}

// That the store was closed may not be on the disk, and if the other mode believed it, the next
// boot would take its commits back to the last flush. So it must have been said again.
TEST(the_last_note_fails_and_a_store_that_is_no_longer_relaxed_goes_on)
{
    DiskScene *scene = scene_open(FLUSH_MS_MAX);
    scene_append_ok(scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ true});
    engine_close(scene->engine);
    scene->engine = NULL;
    disk_mend();
    scene->options.store.flush_ms = 0;
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_IO);
    CHECK(disk_has_failed()); // it was about to say so
    scene->engine = NULL;
    disk_mend();
    expect_after(scene, "one", LOSES_NOTHING, /* is_taken_back= */ false);
    scene_close(scene);
}

// The file that notes flushes, and its name, are on the disk before it is used: also when it is not
// who made it that uses it.
TEST(a_note_file_that_could_not_be_flushed_is_made_anew)
{
    Engine *engine;
    EngineOptions options = {.store = {.directory = test_dir(),
                                       .map_bytes = (size_t)1 << 28,
                                       .flush_ms = FLUSH_MS_MAX,
                                       .boot_id = "one"}};
    log_configure(LOG_OFF, STDERR_FILENO);
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_IO);
    // The second is that of the first note, if the file's own was asked for again.
    disk_fail((DiskFault){DISK_FLUSH, "flushed.mdb", EIO, 2, /* is_for_ever= */ false});
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_IO);
    CHECK(disk_has_failed());
    disk_mend();
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_NONE);
    engine_close(engine);
}
