// A log on a disk that reports an error. What was acknowledged as durable is there after any death,
// what was refused never comes back, nothing is there twice, and the store goes on.

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "disk_scene.h"

enum { LATER = 25 };

static const char LOG_LINE[] = "msg=\"the log cannot be written\"";

static void expect_after(const DiskScene *scene, const char *boot_id, SceneLoss loss, size_t count)
{
    bool is_renewed = scene->options.store.flush_ms > 0 && *boot_id == 't';
    scene_expect_after(scene, (SceneAfter){boot_id, loss, count, is_renewed});
}

// After a death of the process, and after one of the machine with data.mdb as it was at last.
static void expect_after_in_copies(const DiskScene *scene, size_t count)
{
    expect_after(scene, "one", LOSES_NOTHING, count);
    expect_after(scene, "two", LOSES_NOTHING, count);
    expect_after(scene, "two", LOSES_DATA, count);
}

// ---- Flushes ----

// A call that waits for the flush is not known to be stored: the log has it, unless the kernel
// drops it.
static void fail_in_a_commit(int code, bool is_for_ever)
{
    DiskScene *scene = scene_open(/* flush_ms= */ 0);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", code, 1, is_for_ever});
    CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_IO);
    scene_note_unknown(scene);
    scene_expect_closed(scene, LOG_LINE);
    disk_mend();
    expect_after(scene, "one", LOSES_NOTHING, SCENE_KEPT + 1);
    expect_after(scene, "two", LOSES_NOTHING, SCENE_KEPT + 1);
    expect_after(scene, "one", LOSES_LOG, SCENE_KEPT);
    expect_after(scene, "two", LOSES_LOG_AND_DATA, SCENE_KEPT);
    scene_reopen(scene, /* flush_ms= */ 0, FLUSH_MS_MAX);
    scene_close(scene);
}

TEST(a_flush_of_the_log_that_fails_once_is_not_repeated_and_called_good)
{
    fail_in_a_commit(EIO, /* is_for_ever= */ false);
}

TEST(a_flush_of_the_log_that_fails_from_now_on)
{
    fail_in_a_commit(EIO, /* is_for_ever= */ true);
}

TEST(a_flush_of_the_log_that_finds_the_disk_full)
{
    fail_in_a_commit(ENOSPC, /* is_for_ever= */ false);
}

// The process had everything in data.mdb, which the kernel keeps; the machine has what the log has.
static void expect_relaxed_loss(const DiskScene *scene)
{
    size_t count = scene->count;
    expect_after(scene, "one", LOSES_NOTHING, count);
    expect_after(scene, "one", LOSES_LOG, count);
    expect_after(scene, "two", LOSES_NOTHING, count);
    expect_after(scene, "two", LOSES_DATA, count);
    expect_after(scene, "two", LOSES_LOG_AND_DATA, SCENE_KEPT);
}

static void fail_in_a_sync_request(int code, bool is_for_ever)
{
    DiskScene *scene = scene_open(FLUSH_MS_MAX);
    scene_append_ok(scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", code, 1, is_for_ever});
    CHECK_EQ(scene_append(scene, /* is_sync= */ true), ERROR_IO);
    scene_note_unknown(scene);
    scene_expect_closed(scene, LOG_LINE);
    disk_mend();
    expect_relaxed_loss(scene);
    scene_close(scene);
}

TEST(a_relaxed_log_whose_flush_fails_once_is_not_flushed_again)
{
    fail_in_a_sync_request(EIO, /* is_for_ever= */ false);
}

TEST(a_relaxed_log_whose_flush_fails_from_now_on)
{
    fail_in_a_sync_request(EIO, /* is_for_ever= */ true);
}

TEST(a_relaxed_log_whose_flush_finds_the_disk_full)
{
    fail_in_a_sync_request(ENOSPC, /* is_for_ever= */ false);
}

// Nobody asked for the flush: the next call, whichever it is, hears of it.
static void fail_in_the_background(bool is_for_ever)
{
    DiskScene *scene = scene_open(FLUSH_MS_MAX);
    scene_reopen(scene, /* flush_ms= */ 1, FLUSH_MS_MAX);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, is_for_ever});
    scene_append_until_closed(scene);
    scene_expect_closed(scene, LOG_LINE);
    disk_mend();
    scene->options.store.flush_ms = FLUSH_MS_MAX;
    expect_relaxed_loss(scene);
    scene_close(scene);
}

TEST(a_flush_of_the_log_that_fails_behind_everybodys_back)
{
    fail_in_the_background(/* is_for_ever= */ false);
}

TEST(a_flush_of_the_log_that_fails_behind_everybodys_back_from_now_on)
{
    fail_in_the_background(/* is_for_ever= */ true);
}

// data.mdb is complete by then.
TEST(the_last_flush_of_the_log_fails)
{
    DiskScene *scene = scene_open(FLUSH_MS_MAX);
    scene_append_ok(scene, LATER);
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, /* is_for_ever= */ false});
    engine_close(scene->engine);
    scene->engine = NULL;
    CHECK_EQ(scene_logged(scene, LOG_LINE), 1);
    disk_mend();
    scene_expect_after(scene, (SceneAfter){"one", LOSES_LOG, SCENE_KEPT + LATER, false});
    scene_expect_after(scene, (SceneAfter){"two", LOSES_LOG, SCENE_KEPT + LATER, false});
    scene_close(scene);
}

// ---- Records ----

static void fail_in_a_record(unsigned flush_ms, DiskFault fault, const char *line)
{
    DiskScene *scene = scene_open(flush_ms);
    scene_append_ok(scene, LATER);
    disk_fail(fault);
    CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_IO);
    scene_expect_closed(scene, line);
    disk_mend();
    expect_after_in_copies(scene, scene->count);
    scene_reopen(scene, flush_ms, FLUSH_MS_MAX);
    scene_close(scene);
}

static void fail_in_records(DiskFault fault, const char *line)
{
    fail_in_a_record(/* flush_ms= */ 0, fault, line);
    fail_in_a_record(FLUSH_MS_MAX, fault, line);
}

static const char TAKEN_BACK[] =
    "msg=\"the log cannot be written\" detail=\"cannot write (the record was taken back) ";
static const char NOT_WRITTEN[] = "msg=\"the log cannot be written\" detail=\"cannot write /";

TEST(a_record_that_cannot_be_written_does_not_come_back)
{
    fail_in_records((DiskFault){DISK_WRITE, "*.log", EIO, 1, /* is_for_ever= */ false}, TAKEN_BACK);
    fail_in_records((DiskFault){DISK_WRITE, "*.log", ENOSPC, 1, /* is_for_ever= */ false},
                    TAKEN_BACK);
}

TEST(a_record_that_cannot_be_written_or_taken_back_does_not_come_back)
{
    fail_in_records((DiskFault){DISK_WRITE, "*.log", EIO, 1, /* is_for_ever= */ true}, NOT_WRITTEN);
}

TEST(half_a_record_does_not_come_back)
{
    fail_in_records((DiskFault){DISK_WRITE_PART, "*.log", EIO, 1, /* is_for_ever= */ true},
                    NOT_WRITTEN);
}

TEST(a_record_that_is_written_in_two_parts_is_whole)
{
    DiskScene *scene = scene_open(/* flush_ms= */ 0);
    disk_fail((DiskFault){DISK_WRITE_PART, "*.log", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_NONE);
    CHECK(disk_has_failed());
    disk_mend();
    expect_after(scene, "two", LOSES_DATA, SCENE_KEPT + 1);
    scene_close(scene);
}

// ---- Segments ----

static void expect_no_segment(const DiskScene *scene, unsigned number)
{
    char path[700];
    snprintf(path, sizeof(path), "%s/log/%016x.log", scene->directory, number);
    CHECK(access(path, F_OK) != 0);
}

// A text that needs a larger segment than the first one.
static Error append_large(DiskScene *scene)
{
    return scene_append_bytes(scene, 1 << 20, /* is_sync= */ true);
}

static void find_no_room_for_a_segment(unsigned flush_ms, DiskCall call)
{
    DiskScene *scene = scene_open(flush_ms);
    disk_fail((DiskFault){call, "*.log", ENOSPC, 1, /* is_for_ever= */ true});
    for (int i = 0; i < 3; i++)
        CHECK_EQ(append_large(scene), ERROR_STORE_FULL);
    scene_expect_texts(scene, scene->engine, SCENE_KEPT);
    for (unsigned number = 2; number < 8; number++)
        expect_no_segment(scene, number);
    disk_mend();
    expect_after(scene, "one", LOSES_NOTHING, SCENE_KEPT);
    CHECK_EQ(append_large(scene), ERROR_NONE);
    expect_after_in_copies(scene, SCENE_KEPT + 1);
    scene_close(scene);
}

TEST(a_segment_without_room_is_a_full_store_that_goes_on)
{
    find_no_room_for_a_segment(/* flush_ms= */ 0, DISK_ALLOCATE);
    find_no_room_for_a_segment(/* flush_ms= */ 0, DISK_WRITE);
    find_no_room_for_a_segment(FLUSH_MS_MAX, DISK_ALLOCATE);
    find_no_room_for_a_segment(FLUSH_MS_MAX, DISK_WRITE);
}

// Nothing was written to it, so nothing comes back.
TEST(a_segment_that_cannot_be_flushed_closes_the_store)
{
    DiskScene *scene = scene_open(/* flush_ms= */ 0);
    disk_fail((DiskFault){DISK_FLUSH, "*.log", EIO, 1, /* is_for_ever= */ false});
    CHECK_EQ(append_large(scene), ERROR_IO);
    scene_expect_closed(scene, "error=IO detail=\"cannot make room for /");
    disk_mend();
    expect_after_in_copies(scene, SCENE_KEPT);
    scene_close(scene);
}

// The next segment is made in the background while there is room in this one. If that fails it is
// tried again, under the next number. An append that is full before the background has tried makes
// the segment itself, and is refused once.
TEST(a_segment_that_cannot_be_made_ready_is_made_later)
{
    enum { TEXT_BYTES = 50000, COUNT = 60 }; // three segments
    DiskScene *scene = scene_open(/* flush_ms= */ 0);
    disk_fail((DiskFault){DISK_WRITE, "0000000000000002.log", ENOSPC, 1, /* is_for_ever= */ true});
    size_t refused = 0;
    for (int i = 0; i < COUNT;) {
        Error error = scene_append_bytes(scene, TEXT_BYTES, /* is_sync= */ false);
        if (error == ERROR_STORE_FULL) refused++;
        CHECK(refused <= 1 && (!error || error == ERROR_STORE_FULL));
        if (!error) i++;
    }
    CHECK(disk_has_failed());
    disk_mend();
    // A refusal asks for a flush of data.mdb, which the kernel then has on the disk.
    expect_after(scene, "two", refused ? LOSES_NOTHING : LOSES_DATA, SCENE_KEPT + COUNT);
    scene_close(scene);
}

// ---- Records that are taken back ----

// Each write of a commit of LMDB fails in turn. The log has the record by then. Before the meta
// page it is taken back; at the meta page nobody knows, and the store closes itself.
static void refuse_commits(unsigned flush_ms)
{
    Error error = ERROR_STORE_FULL;
    size_t refused = 0;
    for (size_t nth = 1; error == ERROR_STORE_FULL; nth++) {
        DiskScene *scene = scene_open(flush_ms);
        scene_append_ok(scene, LATER);
        size_t count = scene->count;
        disk_fail((DiskFault){DISK_WRITE, "data.mdb", ENOSPC, nth, /* is_for_ever= */ true});
        error = scene_append(scene, /* is_sync= */ true);
        CHECK(disk_has_failed());
        if (error == ERROR_STORE_FULL) {
            refused++;
            CHECK_EQ(scene_append(scene, /* is_sync= */ true), ERROR_STORE_FULL);
            disk_mend();
            expect_after(scene, "one", LOSES_NOTHING, count);
            expect_after(scene, "two", LOSES_NOTHING, count);
            scene_append_ok(scene, 1);
            disk_keep(scene->directory); // a refused write is followed by a flush of data.mdb
            scene_append_ok(scene, LATER);
            expect_after_in_copies(scene, count + 1 + LATER);
        } else {
            CHECK_EQ(error, ERROR_IO);
            scene_note_unknown(scene);
            scene_expect_closed(scene, "error=IO detail=\"cannot commit to /");
            disk_mend();
            expect_after_in_copies(scene, count + 1);
        }
        scene_close(scene);
    }
    CHECK(refused > 0);
}

TEST(a_record_whose_commit_finds_no_room_is_taken_back)
{
    refuse_commits(/* flush_ms= */ 0);
}

TEST(a_relaxed_record_whose_commit_finds_no_room_is_taken_back)
{
    refuse_commits(FLUSH_MS_MAX);
}

// What says that the record does not count fails too: nobody knows whether it does, so the store
// closes itself. The record is there unless the kernel drops it.
static void fail_to_take_back(unsigned flush_ms, DiskFault fault)
{
    DiskScene *scene = scene_open(flush_ms);
    disk_fail((DiskFault){DISK_WRITE, "data.mdb", ENOSPC, 1, /* is_for_ever= */ false});
    disk_fail_also(fault);
    CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_IO);
    if (fault.call == DISK_WRITE) scene_note_unknown(scene);
    scene_expect_closed(scene, LOG_LINE);
    disk_mend();
    expect_after_in_copies(scene, scene->count);
    expect_after(scene, "two", LOSES_LOG_AND_DATA, SCENE_KEPT);
    scene_close(scene);
}

TEST(a_record_that_cannot_be_taken_back_closes_the_store)
{
    fail_to_take_back(0, (DiskFault){DISK_WRITE, "*.log", EIO, 2, /* is_for_ever= */ false});
    fail_to_take_back(0, (DiskFault){DISK_WRITE, "*.log", EIO, 2, /* is_for_ever= */ true});
    fail_to_take_back(FLUSH_MS_MAX, (DiskFault){DISK_WRITE, "*.log", EIO, 2, false});
}

TEST(a_record_that_was_taken_back_without_a_flush_closes_the_store)
{
    fail_to_take_back(0, (DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 2, /* is_for_ever= */ false});
    fail_to_take_back(FLUSH_MS_MAX, (DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, false});
}
