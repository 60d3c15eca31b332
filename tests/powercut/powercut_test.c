// The power is cut at any instant of a recorded day, and what may be on the disk is opened: the
// store must be whole, hold a first part of the day's writes, and of those at least what its mode
// promises. TINE_POWERCUT_IMAGES=10000 makes so many images of each mode.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faulty_log.h"
#include "image.h"
#include "powercut_day.h"
#include "report/log.h"
#include "unpinned.h"

enum {
    IMAGES_DEFAULT = 150,
    IMAGES_PER_DAY = 50, // of which of the day after a cut:
    IMAGES_PER_NEXT_DAY = 20,
    WRITES_PER_DAY = 120,
    WRITES_PER_NEXT_DAY = 30,
    PINLESS_DAYS_MAX = 10,
    OFTEN_MS = 2,
    FAULTY_DAYS_MAX = 10,
    FAULTY_SEGMENT_BYTES = 8 * 1024,
};

typedef struct Tally {
    size_t images, bad;
} Tally;

static void apply(const Day *day, size_t cut, size_t write_count, Model *model)
{
    if (write_count == 0) return;
    (void)model_add_session(model, day->session, NO_SESSION);
    for (size_t i = 1; i < write_count; i++)
        model_apply(model, &day_history(day, cut)->writes[i]);
}

// In a process of its own, which ends badly if the image is not as it must be.
static void verify(const Day *day, const char *image, size_t cut)
{
    static Model model;
    char store[1024];
    snprintf(store, sizeof(store), "%s/store", image);
    log_configure(LOG_OFF, STDERR_FILENO);
    Engine *engine = day_engine(day->mode == DAY_UNSAFE ? DAY_SYNC : day->mode, store, "another");
    CHECK_CLEAN(engine);
    size_t required = day->required[cut];
    size_t held = day_held(day_history(day, cut), engine);
    if (held < required) fprintf(stderr, "%zu of %zu writes are there\n", held, required);
    CHECK(held >= required);
    apply(day, cut, held, &model);
    model_compare(&model, engine, /* all= */ true);
    // And it goes on.
    IdText session;
    engine_new_session(engine, NULL, session);
    engine_append_text(engine, session, "after the cut", NULL);
    engine_close(engine);
    engine = day_engine(DAY_SYNC, store, "a third");
    CHECK_CLEAN(engine);
    engine_close(engine);
}

static bool is_good(const Day *day, const char *image, size_t cut, bool is_quiet)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (is_quiet && (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)))
            _exit(EXIT_FAILURE);
        verify(day, image, cut);
        _exit(EXIT_SUCCESS);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static int compare_cuts(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

// Cuts of which half are before the record `early_end`.
static size_t *pick_cuts(const Day *day, size_t early_end, size_t count, Random *random)
{
    size_t *cuts = calloc(count, sizeof(size_t));
    CHECK(cuts != NULL);
    for (size_t i = 0; i < count; i++) {
        bool is_early = early_end > day->first_cut && i % 2 == 0;
        size_t end = is_early ? early_end : day->recording.count;
        cuts[i] = day->first_cut + random_below(random, end - day->first_cut + 1);
    }
    qsort(cuts, count, sizeof(size_t), compare_cuts);
    return cuts;
}

static void cut_day(const Day *day, const Recording *recording, size_t image_count, bool is_quiet,
                    Tally *tally)
{
    Random random;
    random_seed(&random, day->seed + 1);
    // The day after a cut begins with what that has left.
    size_t *cuts = pick_cuts(day, day->held > 0 ? day->opened_at : 0, image_count, &random);
    Disk *disk = disk_new(recording);
    char image[600];
    snprintf(image, sizeof(image), "%s/image", test_dir());
    for (size_t i = 0; i < image_count; i++) {
        disk_advance(disk, cuts[i]);
        disk_write_image(disk, &random, image);
        tally->images++;
        if (is_good(day, image, cuts[i], is_quiet)) continue;
        tally->bad++;
        if (is_quiet) continue;
        fprintf(stderr, "day %llu: the image of cut %zu of %zu is bad\n",
                (unsigned long long)day->seed, cuts[i], day->recording.count);
    }
    disk_free(disk);
    free(cuts);
}

// The power is cut, the next day goes on with what is left, and the power is cut again.
static void cut_next_day(const Day *day, size_t image_count, Tally *tally)
{
    Random random;
    random_seed(&random, day->seed + 3);
    char root[600];
    snprintf(root, sizeof(root), "%s/next-%llx", test_dir(), (unsigned long long)day->seed);
    size_t span = day->recording.count - day->opened_at;
    size_t cut = day->opened_at + random_below(&random, span + 1);
    Disk *disk = disk_new(&day->recording);
    disk_advance(disk, cut);
    disk_write_image(disk, &random, root);
    disk_free(disk);
    Day *next = day_run_after(day, cut, root, WRITES_PER_NEXT_DAY);
    if (!next) return;
    cut_day(next, &next->recording, image_count, /* is_quiet= */ false, tally);
    day_free(next);
}

static size_t image_count(void)
{
    const char *said = getenv("TINE_POWERCUT_IMAGES");
    return said ? strtoul(said, NULL, 10) : test_scaled(IMAGES_DEFAULT);
}

static void prove(DayMode mode)
{
    Random random;
    uint64_t seed = test_seed();
    random_seed(&random, seed);
    Tally tally = {0, 0};
    size_t days = 0;
    for (size_t left = image_count(); left > 0; days++) {
        size_t count = left < IMAGES_PER_DAY ? left : IMAGES_PER_DAY;
        Day *day = day_run(mode, random_next(&random), WRITES_PER_DAY);
        size_t before = tally.images;
        if (count > IMAGES_PER_NEXT_DAY) cut_next_day(day, IMAGES_PER_NEXT_DAY, &tally);
        count -= tally.images - before;
        cut_day(day, &day->recording, count, /* is_quiet= */ false, &tally);
        day_free(day);
        left -= tally.images - before;
    }
    printf("TINE_TEST_SEED=%llu: %zu images of %zu days, %zu bad\n", (unsigned long long)seed,
           tally.images, days, tally.bad);
    CHECK_EQ(tally.bad, 0);
}

TEST(after_a_power_cut_every_acknowledged_write_is_there)
{
    prove(DAY_SYNC);
}

TEST(after_a_power_cut_a_relaxed_store_is_whole_and_has_what_was_flushed)
{
    prove(DAY_RELAXED);
}

// The tester is tested: an engine with a fault must be found out.

static void expect_found(const Day *day, const Recording *recording)
{
    Tally tally = {0, 0};
    cut_day(day, recording, 20 + test_scaled(80), /* is_quiet= */ true, &tally);
    printf("%zu of %zu images are bad\n", tally.bad, tally.images);
    CHECK(tally.bad > 0);
}

TEST(a_store_that_is_never_flushed_is_found_out)
{
    Day *day = day_run(DAY_UNSAFE, test_seed(), WRITES_PER_DAY);
    expect_found(day, &day->recording);
    day_free(day);
}

// data.mdb is flushed as often as the log, and no flush fails.
static Day *day_of_data(uint64_t seed)
{
    Day options = {
        .mode = DAY_RELAXED,
        .seed = seed,
        .is_without_failures = true,
        .flush_data_ms = OFTEN_MS,
    };
    return day_run_as(&options, WRITES_PER_DAY);
}

// Pages must be used again while a flush is under way, and the cut be then: one day may have none.
static void expect_pin_found(PinFault fault)
{
    Tally tally = {0, 0};
    Random random;
    random_seed(&random, test_seed());
    for (size_t days = 0; tally.bad == 0 && days < PINLESS_DAYS_MAX; days++) {
        pin_fault(fault);
        Day *day = day_of_data(random_next(&random));
        pin_fault(PIN_IS_HELD);
        cut_day(day, &day->recording, 100, /* is_quiet= */ true, &tally);
        day_free(day);
    }
    printf("%zu of %zu images are bad\n", tally.bad, tally.images);
    CHECK(tally.bad > 0);
}

// LMDB uses pages again that the state in flushed.mdb needs.
TEST(a_flushed_state_that_is_not_pinned_is_found_out)
{
    expect_pin_found(PIN_NEVER);
}

TEST(a_pin_that_is_let_go_before_the_flush_is_found_out)
{
    expect_pin_found(PIN_LET_GO_EARLY);
}

static bool is_named(const Recording *recording, int node, const char *name)
{
    for (size_t i = 0; i < recording->count; i++) {
        const Record *record = &recording->records[i];
        if (record->kind == RECORD_NAME && record->entries[0].node == node &&
            strcmp(record->entries[0].name, name) == 0)
            return true;
    }
    return false;
}

// The flushes of flushed.mdb once it is in use: the first makes the file.
static bool is_note_flush(const Recording *recording, size_t index)
{
    const Record *record = &recording->records[index];
    if (record->kind != RECORD_FLUSH_END || recording->is_directory[record->node]) return false;
    return record->begun > 0 && recording->records[record->begun - 1].kind == RECORD_WRITE &&
           recording->records[record->begun - 1].node == record->node &&
           recording->records[record->begun - 1].size < 4096 &&
           is_named(recording, record->node, "flushed.mdb");
}

TEST(a_side_file_that_is_not_flushed_is_found_out)
{
    Day *day = day_of_data(test_seed());
    size_t left_out = 0;
    for (size_t i = 0; i < day->recording.count; i++) {
        if (!is_note_flush(&day->recording, i)) continue;
        day->recording.records[i].node = RECORD_NO_NODE;
        left_out++;
    }
    CHECK(left_out > 10);
    expect_found(day, &day->recording);
    day_free(day);
}

TEST(directories_that_are_not_flushed_are_found_out)
{
    Day *day = day_run(DAY_SYNC, test_seed(), WRITES_PER_DAY);
    size_t left_out = 0;
    for (size_t i = day->first_cut; i < day->recording.count; i++) {
        Record *record = &day->recording.records[i];
        if (record->kind != RECORD_FLUSH_END || !day->recording.is_directory[record->node])
            continue;
        record->node = RECORD_NO_NODE;
        left_out++;
    }
    CHECK(left_out > 0);
    expect_found(day, &day->recording);
    day_free(day);
}

// data.mdb's flush, which comes before that of flushed.mdb, is moved behind it.
TEST(two_flushes_in_the_wrong_order_are_found_out)
{
    Day *day = day_of_data(test_seed());
    const Recording *from = &day->recording;
    Recording to = *from;
    size_t *moved_to = calloc(from->count, sizeof(size_t)), last_of_data = 0, swapped = 0;
    to.records = calloc(2 * from->count, sizeof(Record));
    CHECK(moved_to != NULL && to.records != NULL);
    to.count = 0;
    for (size_t i = 0; i < from->count; i++) {
        Record record = from->records[i];
        bool is_end = record.kind == RECORD_FLUSH_END || record.kind == RECORD_WRITTEN;
        bool is_note = is_note_flush(from, i);
        if (is_end) record.begun = moved_to[record.begun];
        moved_to[i] = to.count;
        to.records[to.count++] = record;
        if (is_note && last_of_data > 0) {
            Record *before = &to.records[last_of_data];
            to.records[to.count++] = *before;
            before->node = RECORD_NO_NODE;
            last_of_data = 0;
            swapped++;
        } else if (record.kind == RECORD_FLUSH_END && is_named(from, record.node, "data.mdb")) {
            last_of_data = to.count - 1;
        }
    }
    CHECK(swapped > 10);
    expect_found(day, &to);
    free(to.records);
    free(moved_to);
    day_free(day);
}

// Whether a flush of a segment is one of records, and not of the zeros that it is made of; and
// where the last of them begins.
static bool is_record_flush(const Recording *recording, size_t index, size_t *out_header)
{
    const Record *flush = &recording->records[index];
    if (flush->kind != RECORD_FLUSH_END || flush->node == RECORD_NO_NODE ||
        !recording->is_log[flush->node])
        return false;
    unsigned writes = 2; // a header, or the body behind it
    for (size_t i = flush->begun; i > 0 && writes > 0; i--) {
        const Record *record = &recording->records[i - 1];
        if (record->node != flush->node || record->kind != RECORD_WRITE) continue;
        *out_header = i - 1;
        if (record->size >= 4 && memcmp(record->bytes, "TLOG", 4) == 0) return true;
        writes--;
    }
    return false;
}

// The log's segments are small, and data.mdb is flushed when it is opened and closed.
static Day *day_of_log(DayMode mode, uint64_t seed)
{
    Day options = {
        .mode = mode,
        .seed = seed,
        .is_without_failures = true,
        .segment_bytes = FAULTY_SEGMENT_BYTES,
    };
    return day_run_as(&options, WRITES_PER_DAY);
}

TEST(a_log_that_is_not_flushed_is_found_out)
{
    Day *day = day_of_log(DAY_SYNC, test_seed());
    size_t left_out = 0, header;
    for (size_t i = 0; i < day->recording.count; i++) {
        if (!is_record_flush(&day->recording, i, &header)) continue;
        day->recording.records[i].node = RECORD_NO_NODE;
        left_out++;
    }
    CHECK(left_out > 10);
    expect_found(day, &day->recording);
    day_free(day);
}

// What is acknowledged after the flush of its record is promised when the record is written.
TEST(a_write_that_is_acknowledged_before_its_record_is_flushed_is_found_out)
{
    Day *day = day_of_log(DAY_SYNC, test_seed());
    size_t moved = 0, header;
    for (size_t i = 0; i < day->recording.count; i++) {
        if (!is_record_flush(&day->recording, i, &header)) continue;
        size_t mark = i;
        while (mark < day->recording.count && day->recording.records[mark].kind != RECORD_MARK)
            mark++;
        if (mark == day->recording.count) break;
        for (size_t cut = header + 1; cut <= mark; cut++)
            day->required[cut] = day->required[mark + 1];
        moved++;
    }
    CHECK(moved > 10);
    Tally tally = {0, 0};
    cut_day(day, &day->recording, 100, /* is_quiet= */ true, &tally);
    CHECK(tally.bad > 0);
    day_free(day);
}

static bool is_log_directory(const Recording *recording, int node)
{
    return recording->is_directory[node] && is_named(recording, node, "log");
}

TEST(a_segment_whose_name_is_not_flushed_is_found_out)
{
    Day *day = day_of_log(DAY_SYNC, test_seed());
    size_t left_out = 0;
    for (size_t i = day->first_cut; i < day->recording.count; i++) {
        Record *record = &day->recording.records[i];
        if (record->kind != RECORD_FLUSH_END || !is_log_directory(&day->recording, record->node))
            continue;
        record->node = RECORD_NO_NODE;
        left_out++;
    }
    CHECK(left_out > 0);
    expect_found(day, &day->recording);
    day_free(day);
}

static void expect_log_found(LogFault in_day, LogFault in_images)
{
    Tally tally = {0, 0};
    Random random;
    random_seed(&random, test_seed());
    for (size_t days = 0; tally.bad == 0 && days < FAULTY_DAYS_MAX; days++) {
        log_fault(in_day);
        Day *day = day_of_log(in_day ? DAY_SYNC : DAY_RELAXED, random_next(&random));
        log_fault(in_images);
        cut_day(day, &day->recording, 100, /* is_quiet= */ true, &tally);
        log_fault(LOG_IS_RIGHT);
        day_free(day);
    }
    printf("%zu of %zu images are bad\n", tally.bad, tally.images);
    CHECK(tally.bad > 0);
}

TEST(a_segment_that_is_used_again_too_early_is_found_out)
{
    expect_log_found(LOG_TRIMS_EARLY, LOG_IS_RIGHT);
}

TEST(a_torn_record_that_is_believed_is_found_out)
{
    expect_log_found(LOG_IS_RIGHT, LOG_TAKES_ANYTHING);
}
