// Ids: strictly increasing, whatever the clock does and wherever the store was closed or a batch
// aborted. (Many threads at once: tests/rpc/writer_ids_test.c.)

#include <stdio.h>

#include "store/event.h"
#include "store/memory.h"
#include "store/open.h"
#include "store_fixture.h"

// Remembers the newest id and checks that each next one is newer.
static void check_newer(Ulid *newest, Ulid id)
{
    CHECK(ulid_compare(id, *newest) > 0);
    *newest = id;
}

static Ulid remember_fact(StoreFixture *f, Ulid session)
{
    NewMemory memory = NEW_MEMORY__INIT;
    memory.content = "a fact";
    Ulid id;
    STEP(f, memory_remember(txn, session, &memory, &id));
    return id;
}

static Ulid last_id(StoreFixture *f)
{
    Txn txn;
    StoreState state;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, NULL, NULL, &txn), ERROR_NONE);
    CHECK_EQ(txn_state(&txn, &state), ERROR_NONE);
    txn_abort(&txn);
    return state.last_id;
}

// One of each kind of record that has an id, in two sessions.
static void issue_all_kinds(StoreFixture *f, Ulid *newest)
{
    Ulid session = primary_session(f);
    check_newer(newest, session);
    check_newer(newest, append_text(f, session, ROLE_USER, "one"));
    Ulid other = subagent_session(f, session);
    check_newer(newest, other);
    check_newer(newest, append_text(f, other, ROLE_USER, "two"));
    check_newer(newest, append_text(f, session, ROLE_ASSISTANT, "three"));
    check_newer(newest, remember_fact(f, other));
    check_newer(newest, fork_session(f, session, (ForkPoint){.kind = FORK_AT_HEAD}));
}

TEST(ids_increase_over_kinds_sessions_and_reopening)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid newest = ULID_ZERO;
    issue_all_kinds(f, &newest);
    store_fixture_reopen(f);
    issue_all_kinds(f, &newest);
    f->now_ms += 1;
    issue_all_kinds(f, &newest);
    CHECK_EQ(ulid_time_ms(newest), f->now_ms);
}

TEST(ids_increase_while_the_clock_is_set_back_by_an_hour)
{
    enum { HOUR_MS = 3600 * 1000 };
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid newest = ULID_ZERO;
    issue_all_kinds(f, &newest);
    int64_t before_ms = f->now_ms;
    f->now_ms -= HOUR_MS;
    issue_all_kinds(f, &newest);
    store_fixture_reopen(f);
    issue_all_kinds(f, &newest);
    CHECK_EQ(ulid_time_ms(newest), before_ms);
    f->now_ms = before_ms + 1;
    issue_all_kinds(f, &newest);
    CHECK_EQ(ulid_time_ms(newest), before_ms + 1);
}

TEST(within_a_millisecond_an_id_is_the_one_before_plus_one)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Txn *txn = step_begin(f);
    Ulid first = txn_issue_id(txn);
    CHECK(ulid_equal(txn_issue_id(txn), ulid_next(first)));
    step_end(f);
    store_fixture_reopen(f);
    txn = step_begin(f);
    CHECK(ulid_equal(txn_issue_id(txn), ulid_next(ulid_next(first))));
    step_end(f);
}

TEST(millisecond_without_ids_left_lends_from_the_next)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    uint8_t last_bytes[10];
    memset(last_bytes, 255, sizeof(last_bytes));
    Txn *txn = step_begin(f);
    txn->state.last_id = ulid_make(f->now_ms, last_bytes);
    Ulid id = txn_issue_id(txn);
    CHECK(ulid_compare(id, ulid_make(f->now_ms, last_bytes)) > 0);
    CHECK_EQ(ulid_time_ms(id), f->now_ms + 1);
    step_end(f);
}

TEST(aborted_batch_leaves_neither_ids_nor_event_sequences)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    Ulid committed = append_text(f, session, ROLE_USER, "one");
    Ulid newest = last_id(f);
    Txn *txn = step_begin(f);
    uint64_t last_event = txn->state.last_event_sequence;
    Ulid lost = txn_issue_id(txn);
    Event event = EVENT__INIT;
    event.type = "custom";
    CHECK_EQ(event_put(txn, ULID_ZERO, NULL, &event), ERROR_NONE);
    CHECK_EQ(event.sequence, last_event + 1);
    txn_abort(txn);
    CHECK(ulid_equal(last_id(f), newest));

    Ulid next = append_text(f, session, ROLE_USER, "two");
    CHECK(ulid_compare(next, committed) > 0);
    CHECK(ulid_compare(next, newest) > 0);
    CHECK(ulid_equal(next, lost)); // it was never seen, and is issued again
    txn = step_begin(f);
    CHECK_EQ(txn->state.last_event_sequence, last_event + 1);
    txn_abort(txn);
    store_fixture_reopen(f);
    CHECK(ulid_compare(append_text(f, session, ROLE_USER, "three"), next) > 0);
}

TEST(two_stores_issue_different_ids)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid here = primary_session(f);
    StoreOptions options = f->options;
    options.random_seed = 0; // from the kernel
    char directory[512];
    CHECK(snprintf(directory, sizeof(directory), "%s/other", test_dir()) < 512);
    options.directory = directory;
    Store *other;
    Txn txn;
    CHECK_EQ(store_open(&options, NULL, &other), ERROR_NONE);
    CHECK_EQ(txn_begin(other, /* is_write= */ true, NULL, NULL, &txn), ERROR_NONE);
    Ulid there = txn_issue_id(&txn);
    txn_abort(&txn);
    CHECK_EQ(ulid_time_ms(here), ulid_time_ms(there));
    CHECK(ulid_compare(here, there) != 0);
    CHECK(strcmp(store_instance_id(f->store), store_instance_id(other)) != 0);
    store_close(other);
}
