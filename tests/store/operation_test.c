// Operations: how many are kept, how long, and what the clocks of the host have to do with it.

#include "store/operation.h"

#include <stdio.h>

#include "base/limits.h"
#include "check_day.h"

enum { SECOND_MS = 1000, HOUR_MS = 3600 * SECOND_MS, NUMBER_NONE = -1 };

static const Hash REQUEST = {{7}};

typedef struct OperationName {
    char text[32];
} OperationName;

static OperationName name_of(int number)
{
    OperationName name;
    snprintf(name.text, sizeof(name.text), "op-%d", number);
    return name;
}

static void put(StoreFixture *f, int number)
{
    OperationName name = name_of(number);
    STEP(f, operation_put(txn, slice_of(name.text), REQUEST, slice_of(name.text)));
}

static bool is_kept(StoreFixture *f, int number)
{
    OperationName name = name_of(number);
    Txn txn;
    bool found;
    Slice reply;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    CHECK_EQ(operation_find(&txn, slice_of(name.text), REQUEST, &found, &reply), ERROR_NONE);
    if (found) CHECK(slice_equal(reply, slice_of(name.text)));
    txn_abort(&txn);
    return found;
}

// The first of the operations `from` to `to` that is kept; all after it must be, too.
static int oldest_kept(StoreFixture *f, int from, int to)
{
    int oldest = NUMBER_NONE;
    for (int number = from; number <= to; number++) {
        bool kept = is_kept(f, number);
        if (kept && oldest == NUMBER_NONE) oldest = number;
        if (oldest != NUMBER_NONE) CHECK(kept);
    }
    return oldest;
}

static uint64_t count_rows(StoreFixture *f, StoreTable table)
{
    KvStats stats;
    CHECK_EQ(store_stats(f->store, NULL, &stats), ERROR_NONE);
    return stats.rows[table];
}

static void pass(StoreFixture *f, int64_t ms)
{
    f->now_ms += ms;
}

static void step_wall_clock(StoreFixture *f, int64_t ms)
{
    f->stepped_ms += ms;
    f->now_ms += ms;
}

static void reset_machine(StoreFixture *f, const char *boot_id)
{
    f->options.boot_id = boot_id;
    f->stepped_ms = f->now_ms - 7 * SECOND_MS;
    store_fixture_reopen(f);
}

static StoreFixture *fixture_with(uint64_t count_max, const char *boot_id)
{
    StoreFixture *f = store_fixture_open();
    f->options.operation_count_max = count_max;
    f->options.boot_id = boot_id;
    store_fixture_reopen(f);
    return f;
}

TEST(the_newest_operations_are_kept_and_no_more)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(3, NULL);
    for (int number = 1; number <= 3; number++)
        put(f, number);
    CHECK_EQ(oldest_kept(f, 1, 3), 1);
    for (int number = 4; number <= 50; number++) {
        put(f, number);
        CHECK_EQ(oldest_kept(f, number - 4, number), number - 2);
        CHECK_EQ(count_rows(f, TABLE_OPERATIONS), 3);
        CHECK_EQ(count_rows(f, TABLE_OPERATIONS_BY_AGE), 3);
    }
    check_clean(f);
}

TEST(one_operation_may_be_all_that_is_kept)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(1, NULL);
    for (int number = 1; number <= 5; number++) {
        put(f, number);
        CHECK_EQ(oldest_kept(f, 1, number), number);
    }
    check_clean(f);
}

TEST(fewer_operations_are_kept_little_by_little)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, NULL);
    for (int number = 1; number <= 10; number++)
        put(f, number);
    f->options.operation_count_max = 4;
    store_fixture_reopen(f);
    CHECK_EQ(oldest_kept(f, 1, 10), 1);
    for (int number = 11; number <= 16; number++) {
        put(f, number);
        CHECK_EQ(oldest_kept(f, 1, number), 1 + 2 * (number - 10)); // one comes, two go
    }
    put(f, 17);
    CHECK_EQ(oldest_kept(f, 1, 17), 14);
    check_clean(f);
}

TEST(operation_is_kept_for_its_age_to_the_millisecond)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, NULL);
    put(f, 1);
    pass(f, OPERATION_AGE_MS_DEFAULT);
    put(f, 2);
    CHECK(is_kept(f, 1));
    pass(f, 1);
    CHECK(is_kept(f, 1)); // until another write finds it
    put(f, 3);
    CHECK_EQ(oldest_kept(f, 1, 3), 2);
    check_clean(f);
}

TEST(step_of_the_wall_clock_forgets_no_operation)
{
    static const int64_t STEPS[] = {25 * (int64_t)HOUR_MS, -26 * (int64_t)HOUR_MS,
                                    INT64_C(9000) * HOUR_MS, -INT64_C(20000) * HOUR_MS};
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, "one");
    put(f, 1);
    for (int i = 0; i < 4; i++) {
        step_wall_clock(f, STEPS[i]);
        put(f, 2 + i);
        CHECK_EQ(oldest_kept(f, 1, 2 + i), 1);
        store_fixture_reopen(f);
    }
    pass(f, OPERATION_AGE_MS_DEFAULT + 1);
    put(f, 6);
    CHECK_EQ(oldest_kept(f, 1, 6), 3);
    check_clean(f);
}

TEST(glitch_into_the_far_future_does_not_keep_operations_for_ever)
{
    const int64_t century_ms = INT64_C(100) * 365 * 24 * HOUR_MS;
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, NULL);
    step_wall_clock(f, century_ms);
    put(f, 1);
    put(f, 2);
    step_wall_clock(f, -century_ms);
    put(f, 3);
    pass(f, OPERATION_AGE_MS_DEFAULT);
    put(f, 4);
    CHECK_EQ(oldest_kept(f, 1, 4), 1);
    pass(f, 1);
    put(f, 5);
    CHECK_EQ(oldest_kept(f, 1, 5), 3);
    check_clean(f);
}

TEST(time_that_passes_without_a_process_counts_in_the_same_boot)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, "one");
    put(f, 1);
    pass(f, OPERATION_AGE_MS_DEFAULT);
    step_wall_clock(f, -3 * (int64_t)OPERATION_AGE_MS_DEFAULT);
    store_fixture_reopen(f);
    put(f, 2);
    CHECK_EQ(oldest_kept(f, 1, 2), 1);
    pass(f, 1);
    store_fixture_reopen(f);
    put(f, 3);
    CHECK_EQ(oldest_kept(f, 1, 3), 2);
}

TEST(reset_of_the_machine_ages_operations_by_an_hour_at_most)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, "one");
    put(f, 1);
    step_wall_clock(f, 25 * (int64_t)HOUR_MS);
    reset_machine(f, "two");
    put(f, 2);
    CHECK_EQ(oldest_kept(f, 1, 2), 1);
    pass(f, OPERATION_AGE_MS_DEFAULT - RESET_STEP_MS_MAX);
    put(f, 3);
    CHECK_EQ(oldest_kept(f, 1, 3), 1);
    pass(f, 1);
    put(f, 4);
    CHECK_EQ(oldest_kept(f, 1, 4), 2);
}

TEST(reset_to_an_earlier_wall_time_ages_no_operation)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, "one");
    put(f, 1);
    step_wall_clock(f, -25 * (int64_t)HOUR_MS);
    reset_machine(f, "two");
    pass(f, OPERATION_AGE_MS_DEFAULT);
    put(f, 2);
    CHECK_EQ(oldest_kept(f, 1, 2), 1);
    pass(f, 1);
    put(f, 3);
    CHECK_EQ(oldest_kept(f, 1, 3), 2);
}

TEST(aborted_operation_leaves_no_number_and_takes_no_time)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(0, NULL);
    put(f, 1);
    pass(f, OPERATION_AGE_MS_DEFAULT + 1);
    Txn *txn = step_begin(f);
    CHECK_EQ(operation_put(txn, slice_of("op-2"), REQUEST, slice_of("op-2")), ERROR_NONE);
    txn_abort(txn);
    CHECK(is_kept(f, 1));
    check_clean(f);
    put(f, 2);
    CHECK_EQ(oldest_kept(f, 1, 2), 2);
    check_clean(f);
}

TEST(missing_row_of_operations_by_age_is_passed_over)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(2, NULL);
    put(f, 1);
    put(f, 2);
    Key key = key_operation_age(1);
    STEP(f, txn_delete(txn, TABLE_OPERATIONS_BY_AGE, &key));
    put(f, 3);
    put(f, 4);
    CHECK(!is_kept(f, 2));
    CHECK_EQ(oldest_kept(f, 3, 4), 3);
}

// Random days: what must be kept is computed anew, from when each operation was put.
typedef struct Days {
    StoreFixture *f;
    Random random;
    int64_t put_at[4000]; // by number, in the time that store time shows
    int64_t age_ms;       // store time passed
    int first, last;      // kept
} Days;

static int64_t below(Days *days, int64_t bound)
{
    return (int64_t)random_below(&days->random, (uint64_t)bound);
}

static void days_move_clocks(Days *days)
{
    StoreFixture *f = days->f;
    int64_t ms = below(days, 3 * HOUR_MS);
    switch (below(days, 20)) {
    case 0: step_wall_clock(f, ms * 100); break;
    case 1: step_wall_clock(f, -ms * 100); break;
    case 2: store_fixture_reopen(f); break;
    default:
        pass(f, ms / 20);
        days->age_ms += ms / 20;
        break;
    }
}

static void days_put(Days *days, int64_t count_max)
{
    put(days->f, ++days->last);
    days->put_at[days->last] = days->age_ms;
    for (int i = 0; i < OPERATION_PRUNE_PER_WRITE && days->first <= days->last; i++) {
        bool is_old = days->age_ms - days->put_at[days->first] > OPERATION_AGE_MS_DEFAULT;
        if (is_old || days->last - days->first + 1 > count_max) days->first++;
    }
}

// The machine is off for a while, and its wall clock goes on.
static void days_reset(Days *days, int64_t count_max)
{
    static const char *const BOOTS[] = {"one", "two"};
    int64_t ms = below(days, 3 * HOUR_MS);
    pass(days->f, ms);
    reset_machine(days->f, BOOTS[days->f->options.boot_id == BOOTS[0]]);
    days->age_ms += ms < RESET_STEP_MS_MAX ? ms : RESET_STEP_MS_MAX;
    days_put(days, count_max); // what a process counts is kept once it writes
}

TEST(random_days_keep_what_the_rule_says)
{
    enum { COUNT_MAX = 300, PUTS = 2500 };
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_with(COUNT_MAX, "two");
    Days days = {.f = f, .first = 1};
    random_seed(&days.random, test_seed());
    int by_age = 0, by_count = 0;
    for (int i = 0; i < PUTS; i++) {
        bool is_burst = i / 250 % 2 == 0; // with more operations in a day than are kept
        for (int moves = is_burst ? i % 10 == 0 : 2; moves > 0; moves--)
            days_move_clocks(&days);
        days_put(&days, COUNT_MAX);
        if (below(&days, 40) == 0) days_reset(&days, COUNT_MAX);
        int kept = days.last - days.first + 1;
        CHECK_EQ(count_rows(f, TABLE_OPERATIONS), (uint64_t)kept);
        by_count += kept == COUNT_MAX;
        by_age += kept < COUNT_MAX && days.first > 1;
        if (i % 50 != 0) continue;
        CHECK_EQ(oldest_kept(f, 1, days.last), days.first);
        check_clean(f);
    }
    CHECK(by_age > 100 && by_count > 100);
}
