// Store time, on clocks that a test sets.

#include "store/store_time.h"

#include "base/limits.h"
#include "harness.h"

enum { SECOND_MS = 1000, HOUR_MS = 3600 * SECOND_MS };

static const int64_t BEGIN_MS = INT64_C(1700000000000);
static const Hash BOOT_ONE = {{1}}, BOOT_TWO = {{2}};

typedef struct Clocks {
    int64_t wall_ms, boot_ms;
} Clocks;

static int64_t wall_of(void *context)
{
    return ((Clocks *)context)->wall_ms;
}

static int64_t boot_of(void *context)
{
    return ((Clocks *)context)->boot_ms;
}

// A store that was made at BEGIN_MS, when the machine had run for a minute.
typedef struct Scene {
    Clocks clocks;
    Clock clock;
    StoreTime time;
} Scene;

static void scene_begin(Scene *scene, Hash boot)
{
    scene->clocks = (Clocks){BEGIN_MS, 60 * SECOND_MS};
    scene->clock = (Clock){wall_of, boot_of, &scene->clocks};
    scene->time = store_time_begin(&scene->clock, boot);
}

static void pass(Scene *scene, int64_t ms)
{
    scene->clocks.wall_ms += ms;
    scene->clocks.boot_ms += ms;
}

static int64_t advanced(Scene *scene)
{
    store_time_advance(&scene->time, &scene->clock);
    return scene->time.now_ms - BEGIN_MS;
}

static int64_t resumed(Scene *scene, Hash boot)
{
    store_time_resume(&scene->time, &scene->clock, boot);
    return scene->time.now_ms - BEGIN_MS;
}

// The machine starts anew: `off_ms` later by its wall clock.
static void reset(Scene *scene, int64_t off_ms)
{
    scene->clocks.wall_ms += off_ms;
    scene->clocks.boot_ms = 7 * SECOND_MS;
}

TEST(store_time_begins_at_the_wall_time_and_counts_what_passes)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    CHECK_EQ(scene.time.now_ms, BEGIN_MS);
    CHECK_EQ(advanced(&scene), 0);
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), SECOND_MS);
    CHECK_EQ(advanced(&scene), SECOND_MS);
    pass(&scene, 30 * HOUR_MS);
    CHECK_EQ(advanced(&scene), 30 * HOUR_MS + SECOND_MS);
}

TEST(store_time_does_not_see_a_step_of_the_wall_clock)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    scene.clocks.wall_ms += 25 * HOUR_MS;
    CHECK_EQ(advanced(&scene), 0);
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), SECOND_MS);
    scene.clocks.wall_ms -= 300 * (int64_t)HOUR_MS;
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), 2 * SECOND_MS);
}

TEST(store_time_goes_on_after_a_glitch_into_the_far_future)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    scene.clocks.wall_ms = INT64_MAX;
    CHECK_EQ(advanced(&scene), 0);
    scene.clocks.wall_ms = BEGIN_MS;
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), SECOND_MS);
}

TEST(store_time_of_a_process_that_opens_the_store_in_the_same_boot_is_exact)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    pass(&scene, 50 * HOUR_MS);
    scene.clocks.wall_ms -= 49 * HOUR_MS; // which nobody asks
    CHECK_EQ(resumed(&scene, BOOT_ONE), 50 * HOUR_MS);
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), 50 * HOUR_MS + SECOND_MS);
}

TEST(store_time_counts_a_reset_by_the_wall_clock_up_to_its_bound)
{
    static const struct {
        int64_t off_ms, counted_ms;
    } CASES[] = {
        {5 * SECOND_MS, 5 * SECOND_MS},
        {RESET_STEP_MS_MAX, RESET_STEP_MS_MAX},
        {RESET_STEP_MS_MAX + 1, RESET_STEP_MS_MAX},
        {25 * HOUR_MS, RESET_STEP_MS_MAX},
        {TIME_MS_MAX, RESET_STEP_MS_MAX},
        {-SECOND_MS, 0},
        {-2 * TIME_MS_MAX, 0},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        Scene scene;
        scene_begin(&scene, BOOT_ONE);
        reset(&scene, CASES[i].off_ms);
        CHECK_EQ(resumed(&scene, BOOT_TWO), CASES[i].counted_ms);
        pass(&scene, SECOND_MS);
        CHECK_EQ(advanced(&scene), CASES[i].counted_ms + SECOND_MS);
    }
}

TEST(store_time_counts_by_the_wall_clock_if_the_kernel_tells_no_boot)
{
    Scene scene;
    scene_begin(&scene, HASH_ZERO);
    pass(&scene, 25 * HOUR_MS);
    CHECK_EQ(resumed(&scene, HASH_ZERO), RESET_STEP_MS_MAX);
    pass(&scene, 25 * HOUR_MS); // within a process the boot is known
    CHECK_EQ(advanced(&scene), RESET_STEP_MS_MAX + 25 * HOUR_MS);
}

TEST(store_time_counts_nothing_if_the_boot_clock_goes_back)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    scene.clocks.boot_ms -= SECOND_MS; // another time namespace of the same boot
    CHECK_EQ(advanced(&scene), 0);
    pass(&scene, SECOND_MS);
    CHECK_EQ(advanced(&scene), SECOND_MS);
}

TEST(store_time_ends_with_the_times_that_can_be_stored)
{
    Scene scene;
    scene_begin(&scene, BOOT_ONE);
    scene.clocks.boot_ms = INT64_MAX;
    (void)advanced(&scene);
    CHECK_EQ(scene.time.now_ms, TIME_MS_MAX);
    scene.clocks = (Clocks){INT64_MIN, INT64_MIN};
    scene.time = store_time_begin(&scene.clock, BOOT_ONE);
    CHECK_EQ(scene.time.now_ms, 0);
}
