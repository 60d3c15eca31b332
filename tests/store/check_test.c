// The check of a store that nobody damaged: clean, whatever was written.

#include "check_day.h"
#include "store/purge.h"

TEST(an_empty_store_is_clean)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    check_clean(f);
}

TEST(a_store_is_clean_after_a_day_of_all_kinds_of_writes)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Found found;
    check_store(f, &found);
    CHECK_STR(found.text, "");
    CHECK_EQ(found.result.purges_pending, 2);
    CHECK_EQ(found.result.tombstones, 1);
    run_purges(f);
    check_store(f, &found);
    CHECK_STR(found.text, "");
    CHECK_EQ(found.result.purges_pending, 0);
    CHECK_EQ(found.result.rows[TABLE_ORIGINALS] + found.result.rows[TABLE_CALLS], 0);
    for (int table = 0; table < TABLE_COUNT; table++) {
        if (table == TABLE_ORIGINALS || table == TABLE_CALLS) continue;
        CHECK(found.result.rows[table] > 0);
    }
    bool is_kept;
    STEP(f, purge_session(txn, day.tombstone_fork, /* keep_for_forks= */ false, &is_kept));
    check_clean(f);
    run_purges(f);
    check_clean(f);
}

TEST(a_purge_is_clean_between_any_two_slices)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    for (int i = 0; i < 600; i++)
        append_message(f, (MessageAppend){.session = session},
                       i % 50 ? text_message(f, ROLE_USER, "turn")
                              : text_message(f, ROLE_USER, long_text(f, 50000)));
    subagent_session(f, session);
    bool is_kept, more = true;
    STEP(f, purge_session(txn, session, /* keep_for_forks= */ false, &is_kept));
    int slices = 0;
    while (more) {
        check_clean(f);
        STEP(f, purge_slice(txn, &more));
        slices++;
    }
    check_clean(f);
    CHECK(slices > 2);
}

TEST(events_that_the_ring_has_dropped_are_no_damage)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    f->options.event_count_max = 4;
    store_fixture_reopen(f);
    Ulid quiet = primary_session(f);
    Ulid session = primary_session(f);
    for (int i = 0; i < 20; i++)
        append_text(f, session, ROLE_USER, "turn");
    check_clean(f);
    append_text(f, quiet, ROLE_USER, "after a long time");
    check_clean(f);
}

TEST(a_fork_and_what_it_read_may_be_purged_at_once)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid source = primary_session(f);
    append_text(f, source, ROLE_USER, "one");
    Ulid fork = fork_session(f, source, (ForkPoint){.kind = FORK_AT_HEAD});
    for (int i = 0; i < 600; i++)
        append_text(f, fork, ROLE_USER, "turn");
    bool is_kept, more = true;
    STEP(f, purge_session(txn, fork, /* keep_for_forks= */ false, &is_kept));
    STEP(f, purge_session(txn, source, /* keep_for_forks= */ false, &is_kept));
    CHECK(!is_kept);
    while (more) {
        check_clean(f);
        STEP(f, purge_slice(txn, &more));
    }
    check_clean(f);
}
