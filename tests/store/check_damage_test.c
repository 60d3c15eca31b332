// Planted damage: each test writes a row that no call would write, through kv, and the check must
// find it and name it.

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_day.h"
#include "store/call_record.h"
#include "store/event.h"
#include "store/message_remove.h"
#include "store/session_active.h"
#include "store/session_update.h"

static void plant_put(StoreFixture *f, StoreTable table, Key key, Slice value)
{
    STEP(f, txn_put(txn, table, &key, value));
}

static void plant_delete(StoreFixture *f, StoreTable table, Key key)
{
    STEP(f, txn_delete(txn, table, &key));
}

// Changes a session's head behind the store's back.
typedef void (*HeadChange)(Session *head);

static void plant_head(StoreFixture *f, Ulid session, HeadChange change)
{
    Txn *txn = step_begin(f);
    Session *head;
    CHECK_EQ(session_head(txn, session, &head), ERROR_NONE);
    change(head);
    CHECK_EQ(session_put_head(txn, session, head), ERROR_NONE);
    step_end(f);
}

static void change_counts(Session *head)
{
    head->message_count++;
}

static void change_totals(Session *head)
{
    head->own_totals->cost_nano_usd++;
}

static void change_head_id(Session *head)
{
    head->head_id = "";
}

static void change_last_entry(Session *head)
{
    head->last_entry_id = head->head_id;
}

static void change_preview(Session *head)
{
    head->last_user_message = "never said";
}

static void change_event(Session *head)
{
    head->last_event_sequence--;
}

static void change_last_active(Session *head)
{
    head->last_active_at++;
}

TEST(wrong_counts_of_a_head_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.root, change_counts);
    check_finds(f, DAMAGE_SESSION_COUNTS, id_text(f, day.root));
}

TEST(wrong_own_totals_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.root, change_totals);
    check_finds(f, DAMAGE_SESSION_TOTALS, "own_totals.cost_nano_usd");
}

TEST(wrong_head_id_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.fork, change_head_id);
    check_finds(f, DAMAGE_SESSION_HEAD_ID, id_text(f, day.fork));
}

TEST(wrong_last_entry_id_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    STEP(f, session_rewind(txn, &(Rewind){.session = day.root, .message = day.first}));
    plant_head(f, day.root, change_last_entry);
    check_finds(f, DAMAGE_SESSION_LAST_ENTRY, id_text(f, day.root));
}

TEST(wrong_preview_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.rewound, change_preview);
    check_finds(f, DAMAGE_SESSION_PREVIEW, "last_user_message");
}

TEST(wrong_last_event_of_a_session_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.root, change_event);
    check_finds(f, DAMAGE_SESSION_EVENT, id_text(f, day.root));
}

TEST(wrong_last_active_at_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_head(f, day.root, change_last_active);
    check_finds(f, DAMAGE_SESSION_LAST_ACTIVE, id_text(f, day.root));
}

TEST(missing_row_of_by_active_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Txn *txn = step_begin(f);
    Session *head;
    CHECK_EQ(session_head(txn, day.removed, &head), ERROR_NONE);
    CHECK_EQ(session_drop_active(txn, day.removed, head->last_active_at), ERROR_NONE);
    step_end(f);
    check_finds(f, DAMAGE_BY_ACTIVE, id_text(f, day.removed));
}

TEST(second_row_of_by_active_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_put(f, TABLE_BY_ACTIVE, key_by_active(1, day.root), (Slice){NULL, 0});
    check_finds(f, DAMAGE_BY_ACTIVE, "rows for");
}

TEST(session_without_a_head_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_session(day.rewound, SESSION_ROW_HEAD);
    plant_delete(f, TABLE_SESSIONS, key_with_chunk(&key, 0));
    check_finds(f, DAMAGE_SESSION_ROWS, "its head row is missing");
}

TEST(stale_and_missing_rows_of_session_index_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Hash hash = hash_bytes(slice_of("first"));
    plant_put(f, TABLE_SESSION_INDEX, key_session_index(LISTING_SLUG, hash, day.agent),
              (Slice){NULL, 0});
    check_finds(f, DAMAGE_SESSION_INDEX, "does not belong in this listing");
    plant_delete(f, TABLE_SESSION_INDEX, key_session_index(LISTING_SLUG, hash, day.agent));
    check_clean(f);
    plant_delete(f, TABLE_SESSION_INDEX, key_session_index(LISTING_SLUG, hash, day.root));
    check_finds(f, DAMAGE_SESSION_INDEX, "no row of listing 2");
}

TEST(missing_child_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_delete(f, TABLE_CHILDREN, key_of_ids(day.root, day.fork));
    check_finds(f, DAMAGE_CHILDREN, id_text(f, day.fork));
}

TEST(missing_owner_of_a_message_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_delete(f, TABLE_MESSAGE_OWNER, key_of_id(day.answer));
    check_finds(f, DAMAGE_MESSAGE_OWNER, id_text(f, day.answer));
}

TEST(owner_of_a_message_that_is_not_there_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_put(f, TABLE_MESSAGE_OWNER, key_of_id(day.answer), ulid_slice(&day.fork));
    check_finds(f, DAMAGE_MESSAGE_OWNER, "has no such message");
}

TEST(lost_message_is_found_by_its_sequence_parent_and_owner)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_of_ids(day.root, day.answer);
    plant_delete(f, TABLE_MESSAGES, key_with_chunk(&key, 0));
    check_finds(f, DAMAGE_MESSAGE_SEQUENCE, id_text(f, day.tool));
    check_finds(f, DAMAGE_MESSAGE_PARENT, "parent_id is");
    check_finds(f, DAMAGE_MESSAGE_OWNER, "message_owner");
}

TEST(lost_chunk_of_a_message_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_of_ids(day.root, day.large);
    plant_delete(f, TABLE_MESSAGES, key_with_chunk(&key, 3));
    check_finds(f, DAMAGE_CHUNKS, id_text(f, day.large));
    check_finds(f, DAMAGE_MESSAGE_HEAD, "its header says");
}

TEST(head_of_a_message_that_says_another_kind_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Txn *txn = step_begin(f);
    Key record_key = key_of_ids(day.root, day.answer);
    Key key = key_with_chunk(&record_key, 0);
    Slice value;
    bool found;
    CHECK_EQ(txn_get(txn, TABLE_MESSAGES, &key, &found, &value), ERROR_NONE);
    uint8_t *copy = arena_alloc(&f->arena, value.size);
    memcpy(copy, value.bytes, value.size);
    copy[1] = MESSAGE_KIND_INJECTED;
    CHECK_EQ(txn_put(txn, TABLE_MESSAGES, &key, slice(copy, value.size)), ERROR_NONE);
    step_end(f);
    check_finds(f, DAMAGE_MESSAGE_HEAD, id_text(f, day.answer));
}

TEST(message_that_is_no_protobuf_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_of_ids(day.root, day.answer);
    static const uint8_t BYTES[] = {0x10, 1, 2, 0, 0, 0, 0, 2, 0xff, 0xff};
    plant_put(f, TABLE_MESSAGES, key_with_chunk(&key, 0), slice(BYTES, sizeof(BYTES)));
    check_finds(f, DAMAGE_UNREADABLE, id_text(f, day.answer));
}

TEST(missing_and_stale_markers_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_marker(day.root, MESSAGE_KIND_COMPACTION, day.marker);
    plant_put(f, TABLE_MARKERS, key, ulid_slice(&day.answer));
    check_finds(f, DAMAGE_MARKER, "another cut-off");
    plant_delete(f, TABLE_MARKERS, key);
    check_finds(f, DAMAGE_MARKER, id_text(f, day.marker));
    plant_put(f, TABLE_MARKERS, key, ulid_slice(&day.first));
    plant_put(f, TABLE_MARKERS, key_marker(day.root, MESSAGE_KIND_SETTING, day.answer),
              (Slice){NULL, 0});
    check_finds(f, DAMAGE_MARKER, "has another kind");
}

TEST(external_id_that_leads_elsewhere_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Hash hash = hash_pair(slice_of("pi"), slice_of("entry-1"));
    plant_put(f, TABLE_MESSAGE_EXTERNAL, key_message_external(hash, day.root),
              ulid_slice(&day.answer));
    check_finds(f, DAMAGE_MESSAGE_EXTERNAL, "does not lead to it");
    check_finds(f, DAMAGE_MESSAGE_EXTERNAL, "another external ID");
}

TEST(missing_and_stale_parts_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_put(f, TABLE_PARTS, key_part(day.root, PART__KIND_FILE, day.tool, 0), (Slice){NULL, 0});
    check_finds(f, DAMAGE_PART, "no such part");
    plant_delete(f, TABLE_PARTS, key_part(day.root, PART__KIND_FILE, day.tool, 0));
    check_clean(f);
    plant_delete(f, TABLE_PARTS, key_part(day.root, PART__KIND_TOOL_USE, day.tool, 1));
    check_finds(f, DAMAGE_PART, "part 1");
}

TEST(origin_that_points_forward_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    uint8_t value[2 * ULID_BYTES];
    memcpy(value, day.root.bytes, ULID_BYTES);
    memcpy(value + ULID_BYTES, ULID_MAX.bytes, ULID_BYTES);
    plant_put(f, TABLE_ORIGINS, key_of_ids(day.fork, day.fork), slice(value, sizeof(value)));
    check_finds(f, DAMAGE_ORIGIN, id_text(f, day.fork));
}

TEST(origin_to_a_message_of_another_session_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    uint8_t value[2 * ULID_BYTES];
    memcpy(value, day.agent.bytes, ULID_BYTES);
    memcpy(value + ULID_BYTES, day.answer.bytes, ULID_BYTES);
    plant_put(f, TABLE_ORIGINS, key_of_ids(day.fork, day.fork), slice(value, sizeof(value)));
    check_finds(f, DAMAGE_ORIGIN, "does not own the message");
    check_finds(f, DAMAGE_READER, "readers has no row");
    check_finds(f, DAMAGE_READER, "the reader has no origin that leads to the session");
}

TEST(row_of_a_session_that_does_not_exist_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Ulid nobody = ulid_next(day.root);
    Key key = key_of_ids(nobody, day.first);
    plant_put(f, TABLE_MEMORIES, key_with_chunk(&key, 0), (Slice){NULL, 0});
    check_finds(f, DAMAGE_ORPHAN, id_text(f, nobody));
    check_finds(f, DAMAGE_MISPLACED, "memories");
}

TEST(tombstone_without_readers_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_delete(f, TABLE_READERS, key_of_ids(day.tombstone, day.tombstone_fork));
    check_finds(f, DAMAGE_PURGE, "no fork reads");
}

TEST(operation_without_a_date_and_date_without_one_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_operation(slice_of("op-1"));
    plant_delete(f, TABLE_OPERATIONS, key_with_chunk(&key, 0));
    check_finds(f, DAMAGE_OPERATION, "operations_by_age");
    plant_put(f, TABLE_OPERATIONS_BY_AGE, key_operation_age(3), slice("\0\0\0\0\0\0\0\0op-2", 12));
    check_finds(f, DAMAGE_OPERATION, "another date");
    check_finds(f, DAMAGE_OPERATION, "operations_by_age 3: it is not the next number");
    plant_delete(f, TABLE_OPERATIONS_BY_AGE, key_operation_age(2));
    check_finds(f, DAMAGE_OPERATION, "does not lead to it");
}

TEST(missing_last_date_of_an_operation_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_delete(f, TABLE_OPERATIONS_BY_AGE, key_operation_age(2));
    check_finds(f, DAMAGE_OPERATION, "operations_by_age 2: it is missing");
}

TEST(store_time_that_goes_back_or_has_not_come_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    uint8_t value[12] = "????????op-1";
    bytes_put_u64(value, (uint64_t)f->now_ms + 1);
    plant_put(f, TABLE_OPERATIONS_BY_AGE, key_operation_age(1), slice(value, sizeof(value)));
    check_finds(f, DAMAGE_OPERATION, "operations_by_age 1: its store time");
    check_finds(f, DAMAGE_OPERATION, "operations_by_age 2: its store time");
    Key key = key_event(1);
    plant_put(f, TABLE_EVENTS, key_with_chunk(&key, 0), slice(value, EVENT_HEADER_BYTES));
    check_finds(f, DAMAGE_EVENT, "events 1: its store time");
}

TEST(wrong_numbers_of_operations_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Txn *txn = step_begin(f);
    txn->state.first_operation = 4; // the last is 2
    txn->state_is_dirty = true;
    step_end(f);
    check_finds(f, DAMAGE_META, "the first operation is 4");
}

TEST(missing_event_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key key = key_event(2);
    plant_delete(f, TABLE_EVENTS, key_with_chunk(&key, 0));
    check_finds(f, DAMAGE_EVENT_CHAIN, "events 3");
}

TEST(missing_last_event_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Txn *txn = step_begin(f);
    Key key = key_event(txn->state.last_event_sequence);
    step_end(f);
    plant_delete(f, TABLE_EVENTS, key_with_chunk(&key, 0));
    check_finds(f, DAMAGE_EVENT, "no session was purged since");
}

TEST(id_newer_than_the_last_one_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    plant_put(f, TABLE_MESSAGE_OWNER, key_of_id(ULID_MAX), ulid_slice(&day.root));
    check_finds(f, DAMAGE_ID_ORDER, "message_owner");
}

TEST(key_of_a_wrong_shape_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    for (int table = 0; table < TABLE_COUNT; table++) {
        if (table == TABLE_META) continue;
        Key key = key_of_id(day.root);
        key.size = 15;
        plant_put(f, (StoreTable)table, key, (Slice){NULL, 0});
    }
    Found found;
    check_store(f, &found);
    CHECK_EQ(found.result.counts[DAMAGE_KEY], TABLE_COUNT - 1);
}

TEST(unknown_row_of_meta_is_found)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Key key = {.size = 0};
    key_add(&key, "what", 4);
    plant_put(f, TABLE_META, key, (Slice){NULL, 0});
    check_finds(f, DAMAGE_META, "meta what");
}

TEST(a_summary_of_todos_that_is_wrong_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Todos todos = TODOS__INIT;
    TodoSummary summary = TODO_SUMMARY__INIT;
    summary.total = 3;
    todos.summary = &summary;
    todos.session_id = id_text(f, day.root);
    Slice bytes;
    CHECK_EQ(txn_encode(&f->arena, &todos.base, 0, &bytes), ERROR_NONE);
    Key key = key_of_id(day.root);
    plant_put(f, TABLE_TODOS, key_with_chunk(&key, 0), bytes);
    check_finds(f, DAMAGE_TODOS, id_text(f, day.root));
}

static Ulid planted_call(StoreFixture *f, Ulid session)
{
    ModelRef model = MODEL_REF__INIT;
    External external = EXTERNAL__INIT;
    NewCall call = NEW_CALL__INIT;
    CallReceipt receipt = CALL_RECEIPT__INIT;
    model.provider = model.name = "m";
    external.source = "hecate";
    external.id = "call_1";
    call.resolved = &model;
    call.external = &external;
    CallRecordPut put = {.session = session, .call = &call};
    Txn *txn = step_begin(f);
    Ulid id = txn_issue_id(txn);
    CHECK_EQ(call_record_put(txn, &put, id, &receipt), ERROR_NONE);
    step_end(f);
    check_clean(f);
    return id;
}

static Key call_external_key(Ulid session)
{
    Hash hash = hash_pair(slice_of("hecate"), slice_of("call_1"));
    return key_session_index(LISTING_CALL_EXTERNAL, hash, session);
}

static void change_call_count(Session *head)
{
    head->call_count++;
}

static void change_last_call(Session *head)
{
    head->last_call = NULL;
}

TEST(wrong_calls_of_a_head_are_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    planted_call(f, day.root);
    plant_head(f, day.root, change_call_count);
    check_finds(f, DAMAGE_CALL, "call_count");
}

TEST(wrong_last_call_of_a_head_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    planted_call(f, day.root);
    plant_head(f, day.root, change_last_call);
    check_finds(f, DAMAGE_CALL, "last_call");
}

TEST(call_without_the_row_of_its_external_id_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Ulid call = planted_call(f, day.root);
    plant_delete(f, TABLE_SESSION_INDEX, call_external_key(day.root));
    check_finds(f, DAMAGE_CALL, id_text(f, call));
}

TEST(external_row_of_a_call_that_is_gone_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Ulid call = planted_call(f, day.root);
    plant_put(f, TABLE_SESSION_INDEX, call_external_key(day.root), ulid_slice(&day.root));
    check_finds(f, DAMAGE_CALL, id_text(f, call));
}

TEST(original_without_its_message_or_of_a_purged_one_is_found)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    Key record_key = key_of_ids(day.root, day.agent);
    plant_put(f, TABLE_ORIGINALS, key_with_chunk(&record_key, 0), slice_of("{}"));
    check_finds(f, DAMAGE_ORIGINAL, id_text(f, day.agent));

    Receipt receipt = RECEIPT__INIT;
    STEP(f, message_purge(txn, day.tool, &receipt));
    record_key = key_of_ids(day.root, day.tool);
    plant_put(f, TABLE_ORIGINALS, key_with_chunk(&record_key, 0), slice_of("{}"));
    check_finds(f, DAMAGE_ORIGINAL, "the message was purged");
}

// Takes the stored key of a table's last row whose value lies beside it. 0: it has none.
static size_t take_stored_key(StoreFixture *f, StoreTable table, uint8_t out[1 + KEY_SIZE_MAX])
{
    enum { VALUE_BYTES_BESIDE = 1900 };
    Txn txn;
    KvCursor *cursor;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, NULL, NULL, &txn), ERROR_NONE);
    CHECK_EQ(kv_cursor_open(txn.kv, (KvTable)table, &cursor), ERROR_NONE);
    KvRow row;
    bool found;
    do {
        CHECK_EQ(kv_previous(cursor, &found, &row), ERROR_NONE);
    } while (found && row.value.size > VALUE_BYTES_BESIDE);
    out[0] = (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[table].number);
    size_t size = found ? 1 + row.key.size : 0;
    if (found) memcpy(out + 1, row.key.bytes, row.key.size);
    kv_cursor_close(cursor);
    txn_abort(&txn);
    return size;
}

// Changes the first byte behind the key, of the value or its checksum, on every page that has it.
static void flip_behind(Slice key)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/data.mdb", test_dir());
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    CHECK(file >= 0 && fstat(file, &status) == 0);
    size_t size = (size_t)status.st_size;
    uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(map != MAP_FAILED);
    uint8_t *at = map;
    while ((at = memmem(at, (size_t)(map + size - at), key.bytes, key.size)) != NULL) {
        at += key.size;
        *at ^= 1;
    }
    CHECK_EQ(munmap(map, size), 0);
    CHECK_EQ(close(file), 0);
}

TEST(a_row_that_was_changed_is_found_in_each_table_and_the_check_goes_on)
{
    int tried = 0;
    for (int table = 0; table < TABLE_COUNT; table++) {
        if (table == TABLE_META) continue; // read at the opening
        Day day;
        CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
        uint8_t key[1 + KEY_SIZE_MAX];
        size_t key_size = take_stored_key(f, (StoreTable)table, key);
        store_close(f->store);
        f->store = NULL;
        if (key_size > 0) flip_behind(slice(key, key_size));
        store_fixture_reopen(f);
        Found found;
        check_store(f, &found);
        printf("%s", found.text);
        CHECK_EQ(found.result.counts[DAMAGE_CHECKSUM], key_size > 0);
        CHECK((strstr(found.text, "its checksum is wrong") != NULL) == (key_size > 0));
        CHECK(found.result.sessions > 0);
        tried += key_size > 0;
        store_close(f->store);
        f->store = NULL;
        char path[512];
        snprintf(path, sizeof(path), "%s/data.mdb", test_dir());
        CHECK_EQ(unlink(path), 0);
        snprintf(path, sizeof(path), "%s/lock.mdb", test_dir());
        CHECK_EQ(unlink(path), 0);
    }
    CHECK(tried >= TABLE_COUNT - 3);
}
