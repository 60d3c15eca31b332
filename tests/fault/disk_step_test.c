// A disk without room at each step of a short history: each write and each allocation fails in
// turn, once, or with all that follow. After each the store is clean, has all that was acknowledged
// and nothing that was refused, and goes on.

#include <errno.h>
#include <stdio.h>

#include "base/limits.h"
#include "disk_scene.h"

enum { KEPT = 3, STEPS_MAX = 2000 };

// The fourth needs the second segment. No segment gets half full, so the background makes none, and
// each run has the same steps. In the middle (0) the store is closed and opened again.
static const size_t TEXT_BYTES[] = {100, 5000, 300000, 900000, 100, 0, 100, 60000, 100};

typedef struct Counts {
    size_t refused, closed, not_opened;
} Counts;

// The call that closed the store was not acknowledged, and may be stored, unless its record was
// taken back.
static void settle_closed(DiskScene *scene)
{
    engine_close(scene->engine);
    disk_mend();
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_NONE);
    bool is_stored = scene_count(scene) > scene->count;
    if (is_stored) scene_note_unknown(scene);
    if (is_stored) CHECK_EQ(scene_logged(scene, "the record was taken back"), 0);
    scene_expect_texts(scene, scene->engine, scene->count);
}

static void open_again(DiskScene *scene, Counts *counts)
{
    engine_close(scene->engine);
    Error error = scene_open_engine(scene, "one");
    if (!error) return;
    CHECK(error == ERROR_STORE_FULL || error == ERROR_IO);
    CHECK(disk_has_failed());
    counts->not_opened++;
    disk_mend();
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_NONE);
}

static void live(DiskScene *scene, bool is_sync, Counts *counts)
{
    for (size_t i = 0; i < sizeof(TEXT_BYTES) / sizeof(*TEXT_BYTES); i++) {
        if (TEXT_BYTES[i] == 0) {
            open_again(scene, counts);
            continue;
        }
        Error error = scene_append_bytes(scene, TEXT_BYTES[i], is_sync);
        if (!error) continue;
        CHECK(disk_has_failed());
        if (error == ERROR_STORE_FULL) {
            counts->refused++;
            continue;
        }
        CHECK(error == ERROR_IO || error == ERROR_CLOSED); // by a flush that nobody waits for
        counts->closed++;
        settle_closed(scene);
    }
}

// Returns whether there was such a step.
static bool fail_at(size_t nth, unsigned flush_ms, DiskCall call, bool is_for_ever, Counts *counts)
{
    DiskScene *scene = scene_open_with(flush_ms, KEPT);
    disk_fail((DiskFault){call, "*", ENOSPC, nth, is_for_ever});
    live(scene, /* is_sync= */ nth % 2, counts);
    bool has_failed = disk_has_failed();
    disk_mend();
    scene_expect_texts(scene, scene->engine, scene->count);
    scene_expect_copy(scene, "one", scene->count);
    scene_expect_copy(scene, "two", scene->count);
    scene_append_ok(scene, 2);
    scene_expect_copy(scene, "two", scene->count);
    scene_reopen(scene, flush_ms, FLUSH_MS_MAX);
    scene_close(scene);
    return has_failed;
}

static void fail_at_each_step(unsigned flush_ms, DiskCall call, bool is_for_ever)
{
    Counts counts = {0};
    size_t nth = 1;
    while (fail_at(nth, flush_ms, call, is_for_ever, &counts)) {
        nth++;
        CHECK(nth < STEPS_MAX);
    }
    printf("%zu steps: %zu calls refused, %zu closed the store, %zu kept it from opening\n",
           nth - 1, counts.refused, counts.closed, counts.not_opened);
    CHECK(counts.refused > 0);
    if (call == DISK_WRITE) CHECK(counts.closed > 0);
}

TEST(each_write_finds_no_room)
{
    fail_at_each_step(/* flush_ms= */ 0, DISK_WRITE, /* is_for_ever= */ false);
}

TEST(each_write_and_all_after_it_find_no_room)
{
    fail_at_each_step(/* flush_ms= */ 0, DISK_WRITE, /* is_for_ever= */ true);
}

TEST(each_write_of_a_relaxed_store_finds_no_room)
{
    fail_at_each_step(FLUSH_MS_MAX, DISK_WRITE, /* is_for_ever= */ false);
}

TEST(each_write_of_a_relaxed_store_and_all_after_it_find_no_room)
{
    fail_at_each_step(FLUSH_MS_MAX, DISK_WRITE, /* is_for_ever= */ true);
}

TEST(each_write_is_done_in_part_and_none_after_it)
{
    fail_at_each_step(/* flush_ms= */ 0, DISK_WRITE_PART, /* is_for_ever= */ true);
}

TEST(each_allocation_finds_no_room)
{
    fail_at_each_step(/* flush_ms= */ 0, DISK_ALLOCATE, /* is_for_ever= */ false);
    fail_at_each_step(FLUSH_MS_MAX, DISK_ALLOCATE, /* is_for_ever= */ false);
    fail_at_each_step(/* flush_ms= */ 0, DISK_ALLOCATE, /* is_for_ever= */ true);
    fail_at_each_step(FLUSH_MS_MAX, DISK_ALLOCATE, /* is_for_ever= */ true);
}
