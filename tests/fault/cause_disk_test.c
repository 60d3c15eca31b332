// What a disk refuses is told with its cause, to the log and to the caller. docs/durability.md
// lists the lines.

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "cause.h"
#include "disk.h"
#include "gate.h"

TEST(a_full_disk_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    disk_fail((DiskFault){DISK_WRITE, "data.mdb", ENOSPC, 1, /* is_for_ever= */ true});
    CHECK_EQ(cause_append(&scene), ERROR_STORE_FULL);
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=AppendMessage error=STORE_FULL detail=\"cannot "
                       "commit to DIR/data.mdb: No space left on device (errno 28)\"");
    cause_check_said(&scene,
                     "cannot commit to DIR/data.mdb: No space left on device (errno 28); nothing "
                     "was stored; free some space and try again");
    disk_mend();
    CHECK_EQ(cause_append(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

TEST(a_full_map_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    engine_close(scene.engine);
    scene.options.store.map_bytes = 512 << 10;
    CHECK_EQ(engine_open(&scene.options, NULL, &scene.engine), ERROR_NONE);
    Error error;
    do {
        error = cause_append(&scene);
    } while (!error);
    CHECK_EQ(error, ERROR_STORE_FULL);
    cause_check_logged(&scene, "DIR/data.mdb: MDB_MAP_FULL: Environment mapsize limit reached\"");
    engine_close(scene.engine);
}

// The first segment of the log.
#define SEGMENT "DIR/log/0000000000000001.log"

static void open_anew(Cause *scene)
{
    engine_close(scene->engine);
    CHECK_EQ(engine_open(&scene->options, NULL, &scene->engine), ERROR_NONE);
}

// A text that needs a larger segment than the first one.
static Error append_large(Cause *scene)
{
    static char text[(1 << 20) + 1];
    memset(text, 'x', sizeof(text) - 1);
    return cause_call(scene, cause_append_text_request(scene, text, /* is_sync= */ false));
}

TEST(a_disk_without_room_for_the_log_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    disk_fail((DiskFault){DISK_ALLOCATE, "*.log", ENOSPC, 1, /* is_for_ever= */ true});
    CHECK_EQ(append_large(&scene), ERROR_STORE_FULL);
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=AppendMessage error=STORE_FULL detail=\"cannot "
                       "make room for DIR/log/");
    CHECK(strstr(scene.said, "No space left on device (errno 28); nothing was stored; free some "
                             "space and try again") != NULL);
    disk_mend();
    CHECK_EQ(append_large(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

TEST(a_disk_without_room_for_pages_is_told_before_the_log_has_anything)
{
    Cause scene;
    cause_open(&scene, 0);
    disk_fail((DiskFault){DISK_ALLOCATE, "data.mdb", ENOSPC, 1, /* is_for_ever= */ true});
    CHECK_EQ(append_large(&scene), ERROR_STORE_FULL);
    cause_check_logged(&scene, "method=AppendMessage error=STORE_FULL detail=\"cannot make room in "
                               "DIR/data.mdb: No space left on device (errno 28)\"");
    disk_mend();
    CHECK_EQ(append_large(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

static void check_closed(Cause *scene, const char *operation, const char *file)
{
    char pattern[ERROR_DETAIL_BYTES_MAX];
    CHECK_EQ(cause_get_session(scene), ERROR_CLOSED);
    snprintf(pattern, sizeof(pattern),
             "the store closed itself and must be reopened: cannot %s %s: Input/output error "
             "(errno 5)",
             operation, file);
    cause_check_said(scene, pattern);
}

// `before` is the beginning of the line that tells of the failed operation.
static void check_failed(Cause *scene, const char *before, const char *operation, const char *file)
{
    char pattern[ERROR_DETAIL_BYTES_MAX];
    snprintf(pattern, sizeof(pattern), "%scannot %s %s: Input/output error (errno 5)\"", before,
             operation, file);
    cause_check_logged(scene, pattern);
}

static void fail_in_a_commit(DiskFault fault, const char *operation)
{
    char pattern[ERROR_DETAIL_BYTES_MAX];
    Cause scene;
    cause_open(&scene, 0);
    disk_fail(fault);
    CHECK_EQ(cause_append(&scene), ERROR_IO);
    check_failed(&scene, "msg=\"the log cannot be written\" detail=\"", operation, SEGMENT);
    check_failed(&scene, "msg=\"call failed\" method=AppendMessage error=IO detail=\"", operation,
                 SEGMENT);
    snprintf(pattern, sizeof(pattern),
             "cannot %s " SEGMENT ": Input/output error (errno 5); see the server's log",
             operation);
    cause_check_said(&scene, pattern);
    check_closed(&scene, operation, SEGMENT);
    engine_close(scene.engine);
}

TEST(a_disk_that_fails_in_a_commit_is_told_also_to_later_calls)
{
    fail_in_a_commit((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, /* is_for_ever= */ false},
                     "flush");
}

TEST(a_record_that_cannot_be_written_is_told_with_what_became_of_it)
{
    fail_in_a_commit((DiskFault){DISK_WRITE, "*.log", EIO, 1, /* is_for_ever= */ false},
                     "write (the record was taken back)");
}

TEST(a_record_that_may_be_there_is_told_so)
{
    fail_in_a_commit((DiskFault){DISK_WRITE, "*.log", EIO, 1, /* is_for_ever= */ true}, "write");
}

TEST(a_disk_that_fails_in_a_flush_of_a_relaxed_log_is_told)
{
    Cause scene;
    cause_open(&scene, FLUSH_MS_MAX);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(cause_call(&scene, cause_append_request(&scene, /* is_sync= */ true)), ERROR_IO);
    check_failed(&scene, "msg=\"the log cannot be written\" detail=\"", "flush", SEGMENT);
    check_failed(&scene,
                 "method=AppendMessage error=IO detail=\"it may not be on the disk: ", "flush",
                 SEGMENT);
    check_closed(&scene, "flush", SEGMENT);
    engine_close(scene.engine);
}

// The commit that LMDB did not do is in the log, and the meta page may be on the disk or not.
TEST(a_commit_of_lmdb_that_fails_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    disk_fail((DiskFault){DISK_WRITE, "data.mdb", EIO, 1, /* is_for_ever= */ true});
    CHECK_EQ(cause_append(&scene), ERROR_IO);
    check_failed(&scene, "method=AppendMessage error=IO detail=\"", "commit to", "DIR/data.mdb");
    check_closed(&scene, "commit to", "DIR/data.mdb");
    engine_close(scene.engine);
}

// Nobody waits for it: the next call hears of it.
static void fail_a_flush(unsigned flush_ms, const char *file, const char *operation)
{
    char path[ERROR_DETAIL_BYTES_MAX];
    Cause scene;
    cause_open(&scene, flush_ms);
    scene.options.store.flush_data_ms = 1;
    open_anew(&scene);
    disk_fail((DiskFault){DISK_FLUSH, file, EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(cause_append(&scene), ERROR_NONE);
    while (cause_get_session(&scene) == ERROR_NONE)
        sched_yield();
    snprintf(path, sizeof(path), "DIR/%s", file);
    check_failed(&scene, "msg=\"the store cannot be flushed\" detail=\"", operation, path);
    check_closed(&scene, operation, path);
    engine_close(scene.engine);
}

TEST(a_disk_that_fails_in_a_flush_of_data_mdb_is_told)
{
    fail_a_flush(0, "data.mdb", "flush");
}

TEST(a_disk_that_fails_in_a_flush_of_data_mdb_of_a_relaxed_store_is_told)
{
    fail_a_flush(FLUSH_MS_MAX, "data.mdb", "flush");
}

TEST(a_note_of_a_flush_that_fails_is_told_apart)
{
    fail_a_flush(0, "flushed.mdb", "write");
}

// Each call of a batch hears why it was not committed.
TEST(all_calls_of_a_batch_are_told_why_it_failed)
{
    enum { CALLS = 3 };
    Gate gate;
    gate_init(&gate);
    Cause scene;
    cause_open(&scene, 0);
    engine_close(scene.engine);
    scene.options.store.seam = gate_seam(&gate);
    CHECK_EQ(engine_open(&scene.options, NULL, &scene.engine), ERROR_NONE);
    gate_close(&gate);
    PendingCall *calls[CALLS];
    PendingCall *holding = pending_append(scene.engine, scene.session, "holds the writer", 0);
    gate_wait_held(&gate);
    for (size_t i = 0; i < CALLS; i++)
        calls[i] = pending_append(scene.engine, scene.session, "one of them", 0);
    gate_let_one_through(&gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    gate_wait_held(&gate);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, /* is_for_ever= */ false});
    gate_open(&gate);
    for (size_t i = 0; i < CALLS; i++)
        CHECK_EQ(pending_wait(calls[i]), ERROR_IO);
    cause_check_logged(&scene, "error=IO detail=\"cannot flush DIR/log/");
    engine_close(scene.engine);
}
