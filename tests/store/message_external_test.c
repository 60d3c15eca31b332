// The index of external IDs: its rows lead from an ID to the messages of all sessions that have it.

#include <stdio.h>

#include "check_day.h"
#include "store/message_remove.h"
#include "store/purge.h"

static Ulid append_external(StoreFixture *f, Ulid session, const char *id)
{
    NewMessage *message = text_message(f, ROLE_USER, "imported");
    External *external = arena_new(&f->arena, External);
    CHECK(external != NULL);
    tine__v1__external__init(external);
    external->source = "pi";
    external->id = arena_string(&f->arena, slice_of(id));
    message->external = external;
    return append_message(f, (MessageAppend){.session = session}, message);
}

enum { PAIRS_MAX = 8 };

typedef struct Pairs {
    Ulid sessions[PAIRS_MAX], messages[PAIRS_MAX];
    size_t count;
} Pairs;

// What one seek and the rows after it give, as the order of the keys says.
static Pairs pairs_of(StoreFixture *f, const char *id)
{
    Hash hash = hash_pair(slice_of("pi"), slice_of(id));
    Slice prefix = slice(hash.bytes, HASH_BYTES);
    Pairs pairs = {.count = 0};
    Txn txn;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    KvCursor *cursor;
    CHECK_EQ(kv_cursor_open(txn.kv, TABLE_MESSAGE_EXTERNAL, &cursor), ERROR_NONE);
    KvRow row;
    bool found;
    CHECK_EQ(kv_seek(cursor, prefix, &found, &row), ERROR_NONE);
    while (found && slice_starts_with(row.key, prefix)) {
        CHECK(pairs.count < PAIRS_MAX);
        pairs.sessions[pairs.count] = key_id_at(row.key, HASH_BYTES);
        pairs.messages[pairs.count++] = key_id_at(row.value, 0);
        CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
    }
    kv_cursor_close(cursor);
    txn_abort(&txn);
    return pairs;
}

static uint64_t count_rows(StoreFixture *f)
{
    KvStats stats;
    CHECK_EQ(store_stats(f->store, NULL, &stats), ERROR_NONE);
    return stats.rows[TABLE_MESSAGE_EXTERNAL];
}

TEST(external_id_is_found_in_all_sessions_in_their_order)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid sessions[3], messages[3];
    for (int i = 0; i < 3; i++)
        sessions[i] = primary_session(f);
    for (int i = 2; i >= 0; i--) {
        append_external(f, sessions[i], "line-0");
        messages[i] = append_external(f, sessions[i], "line-1");
        append_external(f, sessions[i], "line-2");
    }
    Pairs pairs = pairs_of(f, "line-1");
    CHECK_EQ(pairs.count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(ulid_equal(pairs.sessions[i], sessions[i]));
        CHECK(ulid_equal(pairs.messages[i], messages[i]));
    }
    CHECK_EQ(pairs_of(f, "line-3").count, 0);
    check_clean(f);
}

TEST(external_id_of_a_purged_message_is_gone)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    Ulid first = append_external(f, session, "line-1");
    append_external(f, session, "line-2");
    Receipt receipt = RECEIPT__INIT;
    STEP(f, message_delete(txn, first, &receipt));
    CHECK_EQ(pairs_of(f, "line-1").count, 1);
    STEP(f, message_purge(txn, first, &receipt));
    CHECK_EQ(pairs_of(f, "line-1").count, 0);
    CHECK_EQ(count_rows(f), 1);
    check_clean(f);
}

TEST(external_ids_go_with_the_messages_of_a_purged_session)
{
    enum { MESSAGES = 900 };
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid stays = primary_session(f), goes = primary_session(f);
    char id[32];
    for (int i = 0; i < MESSAGES; i++) {
        snprintf(id, sizeof(id), "line-%d", i);
        append_external(f, stays, id);
        append_external(f, goes, id);
    }
    bool is_kept, more = true;
    STEP(f, purge_session(txn, goes, /* keep_for_forks= */ false, &is_kept));
    int slices = 0;
    while (more) {
        check_clean(f); // so no row is left behind its message, and none goes before it
        STEP(f, purge_slice(txn, &more));
        slices++;
    }
    CHECK(slices > 2);
    check_clean(f);
    CHECK_EQ(count_rows(f), MESSAGES);
}

TEST(external_ids_of_a_tombstone_stay_until_it_is_released)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid source = primary_session(f);
    append_external(f, source, "line-1");
    Ulid fork = fork_session(f, source, (ForkPoint){.kind = FORK_AT_HEAD});
    bool is_kept;
    STEP(f, purge_session(txn, source, /* keep_for_forks= */ true, &is_kept));
    CHECK(is_kept);
    run_purges(f);
    CHECK_EQ(pairs_of(f, "line-1").count, 1);
    check_clean(f);
    STEP(f, purge_session(txn, fork, /* keep_for_forks= */ false, &is_kept));
    run_purges(f);
    CHECK_EQ(count_rows(f), 0);
    check_clean(f);
}

TEST(damaged_message_does_not_stop_the_purge_of_its_session)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    Ulid first = append_external(f, session, "line-1");
    append_external(f, session, "line-2");
    Key record_key = key_of_ids(session, first), key = key_with_chunk(&record_key, 0);
    STEP(f, txn_put(txn, TABLE_MESSAGES, &key, slice_of("?")));
    bool is_kept;
    STEP(f, purge_session(txn, session, /* keep_for_forks= */ false, &is_kept));
    run_purges(f);
    KvStats stats;
    CHECK_EQ(store_stats(f->store, NULL, &stats), ERROR_NONE);
    CHECK_EQ(stats.rows[TABLE_MESSAGES], 0);
    CHECK_EQ(pairs_of(f, "line-2").count, 0);
    check_finds(f, DAMAGE_MESSAGE_EXTERNAL, "the message that it names does not exist");
}

TEST(row_of_an_external_id_without_a_session_is_found)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    Ulid message = append_external(f, session, "line-1");
    Hash hash = hash_pair(slice_of("pi"), slice_of("line-1"));
    Key key = key_message_external(hash, ulid_next(session));
    STEP(f, txn_put(txn, TABLE_MESSAGE_EXTERNAL, &key, ulid_slice(&message)));
    check_finds(f, DAMAGE_MESSAGE_EXTERNAL, "the message that it names does not exist");
}
