// Stores of older formats: files that their programs wrote, and stores that old_store.c made.

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_day.h"
#include "old_store.h"
#include "store/open.h"
#include "store/operation.h"
#include "store/session_list.h"
#include "store/session_update.h"

static const char FIXTURE[] = SOURCE_DIR "/tests/store/fixtures/format-1.mdb.gz";
static const char FIXTURE_2[] = SOURCE_DIR "/tests/store/fixtures/format-2.mdb.gz";

typedef struct Path {
    char text[512];
} Path;

static Path path_of(const char *name)
{
    Path path;
    snprintf(path.text, sizeof(path.text), "%s/%s", test_dir(), name);
    return path;
}

static void run(const char *format, const char *first, const char *second)
{
    char command[2048];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command, sizeof(command), format, first, second);
#pragma GCC diagnostic pop
    CHECK_EQ(system(command), 0);
}

static void place_fixture(void)
{
    run("gzip -dc '%s' >'%s'", FIXTURE, path_of("data.mdb").text);
}

static void place_fixture_2(void)
{
    run("gzip -dc '%s' >'%s'", FIXTURE_2, path_of("data.mdb").text);
}

// Replaces the store by one of an older format, and closes it.
static void make_older(StoreFixture *f, uint64_t format)
{
    CHECK_EQ(mkdir(path_of("older").text, 0700), 0);
    old_store_write(f->store, path_of("older").text, format);
    store_close(f->store);
    f->store = NULL;
    CHECK_EQ(rename(path_of("older/data.mdb").text, path_of("data.mdb").text), 0);
    CHECK_EQ(unlink(path_of("lock.mdb").text), 0);
}

static Error open_store(StoreFixture *f)
{
    ErrorDetail detail = {{0}};
    Error error = store_open(&f->options, &detail, &f->store);
    if (error) printf("%s\n", detail.text);
    return error;
}

// A fixture whose store is closed and empty.
static StoreFixture *fixture_closed(void)
{
    StoreFixture *f = store_fixture_open();
    store_close(f->store);
    f->store = NULL;
    CHECK_EQ(unlink(path_of("data.mdb").text), 0);
    CHECK_EQ(unlink(path_of("lock.mdb").text), 0);
    return f;
}

static uint32_t count_sessions(StoreFixture *f, SessionQuery query)
{
    Txn txn;
    SessionPage page;
    Buffer out = {.bytes = NULL};
    query.limit = 1000;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    CHECK_EQ(session_append_page(&txn, &query, 1, &out, &page), ERROR_NONE);
    txn_abort(&txn);
    buffer_free(&out);
    return page.count;
}

static SessionQuery active_sessions(void)
{
    SessionQuery query = session_query_all();
    query.deleted = DELETED_FILTER_EXCLUDE;
    query.archived = ARCHIVED_FILTER_EXCLUDE;
    return query;
}

TEST(store_of_format_1_is_migrated_and_lists_its_sessions_by_state)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    CHECK_EQ(open_store(f), ERROR_NONE);
    check_clean(f);
    CHECK_EQ(count_sessions(f, session_query_all()), 6);
    CHECK_EQ(count_sessions(f, active_sessions()), 3); // active, fork, busy
    SessionQuery query = session_query_all();
    query.archived = ARCHIVED_FILTER_ONLY;
    CHECK_EQ(count_sessions(f, query), 2); // one of them is deleted
    query = session_query_all();
    query.status = SESSION_STATUS_BUSY;
    CHECK_EQ(count_sessions(f, query), 1);
    CHECK(access(path_of("migrating").text, F_OK) != 0);
}

// It has a tombstone, a pending purge, records of several chunks, external IDs that two sessions
// share, and IDs that were issued while the clock was 1000 hours ahead.
TEST(store_of_format_2_opens_whole_and_its_purge_goes_on)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture_2();
    CHECK_EQ(open_store(f), ERROR_NONE);
    check_clean(f);
    run_purges(f);
    check_clean(f);
    CHECK_EQ(count_sessions(f, active_sessions()), 10);
    run("gzip -dc '%s' | cmp - '%s'", FIXTURE_2, path_of("before-format-3/data.mdb").text);
}

static bool has_operation(StoreFixture *f, const char *id, const char *request, size_t reply_bytes)
{
    Txn txn;
    Slice reply = {NULL, 0};
    bool found;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    CHECK_EQ(operation_find(&txn, slice_of(id), hash_bytes(slice_of(request)), &found, &reply),
             ERROR_NONE);
    txn_abort(&txn);
    if (found) CHECK_EQ(reply.size, reply_bytes);
    return found;
}

// The file was written at 1 700 000 001 s. Its operations from op-4 on have later dates.
TEST(operations_and_events_of_format_2_are_kept_for_their_age)
{
    static const int64_t hour_ms = 3600 * 1000;
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture_2();
    f->now_ms += 23 * hour_ms;
    CHECK_EQ(open_store(f), ERROR_NONE);
    CHECK(has_operation(f, "op-3", "long", 9000));
    CHECK(has_operation(f, "op-4", "r", 5));
    CHECK(has_operation(f, "op-5", "r", 5));
    f->now_ms += 2 * hour_ms;
    STEP(f, operation_put(txn, slice_of("op-6"), hash_bytes(slice_of("r")), slice_of("reply")));
    CHECK(!has_operation(f, "op-3", "long", 9000));
    CHECK(has_operation(f, "op-4", "r", 5)); // from the future: as old as the migration
    CHECK(has_operation(f, "op-5", "r", 5));
    f->now_ms += 23 * hour_ms;
    STEP(f, operation_put(txn, slice_of("op-7"), hash_bytes(slice_of("r")), slice_of("reply")));
    CHECK(!has_operation(f, "op-4", "r", 5));
    CHECK(!has_operation(f, "op-5", "r", 5));
    check_clean(f);
}

TEST(external_ids_of_format_2_are_found_again)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture_2();
    CHECK_EQ(open_store(f), ERROR_NONE);
    KvStats stats;
    CHECK_EQ(store_stats(f->store, NULL, &stats), ERROR_NONE);
    // Two sessions of 30, one message of the day's root, its agent's and its tombstone's.
    CHECK_EQ(stats.rows[TABLE_MESSAGE_EXTERNAL], 2 * 30 + 3);
}

TEST(migrated_store_can_be_written_and_opened_again)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    f->now_ms = INT64_C(1900000000000); // later than the ids in the file
    CHECK_EQ(open_store(f), ERROR_NONE);
    primary_session(f);
    store_fixture_reopen(f);
    check_clean(f);
    CHECK_EQ(count_sessions(f, active_sessions()), 4);
}

static Hash hash_rows(Store *store)
{
    Txn txn;
    Hash hash = HASH_ZERO;
    CHECK_EQ(txn_begin(store, /* is_write= */ false, NULL, NULL, &txn), ERROR_NONE);
    for (KvTable table = 0; table < TABLE_COUNT; table++) {
        CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
        CHECK_EQ(kv_cursor_open(txn.kv, table, &cursor), ERROR_NONE);
        KvRow row;
        bool found;
        for (;;) {
            CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
            if (!found) break;
            bool is_state = table == TABLE_META && slice_equal(row.key, slice_of("state"));
            if (is_state) row.value.size = ULID_BYTES + 4 * 8; // without its store time
            Hash next = hash_pair(row.key, row.value);
            hash = hash_pair(slice(hash.bytes, HASH_BYTES), slice(next.bytes, HASH_BYTES));
        }
    }
    txn_abort(&txn);
    return hash;
}

TEST(migrated_rows_are_those_that_were_there)
{
    for (uint64_t format = 1; format < STORE_FORMAT_VERSION; format++) {
        Day day;
        CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
        Hash before = hash_rows(f->store);
        make_older(f, format);
        CHECK_EQ(open_store(f), ERROR_NONE);
        Hash after = hash_rows(f->store);
        CHECK_BYTES(slice(after.bytes, HASH_BYTES), slice(before.bytes, HASH_BYTES));
        check_clean(f);
        store_fixture_close(&f);
        run("rm -rf '%s'/*%s", test_dir(), "");
    }
}

static void append_of_size(StoreFixture *f, Ulid session, size_t size)
{
    (void)append_message(f, (MessageAppend){.session = session},
                         text_message(f, ROLE_USER, long_text(f, size)));
}

TEST(records_of_all_sizes_are_cut_into_the_new_chunks)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid session = primary_session(f);
    for (size_t size = 3800; size < 4100; size++)
        append_of_size(f, session, size);
    for (size_t chunks = 2; chunks < 12; chunks++)
        for (size_t less = 0; less < 300; less += 7)
            append_of_size(f, session, chunks * VALUE_BYTES_MAX - less);
    Hash before = hash_rows(f->store);
    make_older(f, 2);
    CHECK_EQ(open_store(f), ERROR_NONE);
    Hash after = hash_rows(f->store);
    CHECK_BYTES(slice(after.bytes, HASH_BYTES), slice(before.bytes, HASH_BYTES));
}

TEST(old_file_stays_beside_the_migrated_one)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    CHECK_EQ(mkdir(path_of("before-format-3").text, 0700), 0); // of an earlier migration
    CHECK_EQ(open_store(f), ERROR_NONE);
    run("gzip -dc '%s' | cmp - '%s'", FIXTURE, path_of("before-format-3-2/data.mdb").text);
}

TEST(store_of_an_older_format_is_not_migrated_by_who_only_reads)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    f->options.is_read_only = true;
    ErrorDetail detail = {{0}};
    CHECK_EQ(store_open(&f->options, &detail, &f->store), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(detail.text, "storage format 1") != NULL);
    CHECK(strstr(detail.text, "start tined on it once") != NULL);
    run("gzip -dc '%s' | cmp - '%s'", FIXTURE, path_of("data.mdb").text);
}

TEST(what_an_interrupted_migration_left_is_in_nobodys_way)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    CHECK_EQ(mkdir(path_of("migrating").text, 0700), 0);
    run("echo half >'%s'; echo half >'%s'", path_of("migrating/data.mdb").text,
        path_of("migrating/lock.mdb").text);
    CHECK_EQ(open_store(f), ERROR_NONE);
    check_clean(f);
}

TEST(more_sessions_than_a_slice_has_are_migrated)
{
    enum { SESSIONS = 2500 };
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid busy = ULID_ZERO;
    for (int i = 0; i < SESSIONS; i++)
        busy = primary_session(f);
    SessionField mask[] = {SESSION_FIELD_STATUS};
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    request.mask = mask;
    request.n_mask = 1;
    request.status = SESSION_STATUS_RETRY;
    STEP(f, session_update(txn, busy, &request));
    make_older(f, 1);
    CHECK_EQ(open_store(f), ERROR_NONE);
    check_clean(f);
    SessionQuery query = session_query_all();
    query.status = SESSION_STATUS_RETRY;
    CHECK_EQ(count_sessions(f, query), 1);
}

// Fails the n-th call of the engine, and says whether there was one.
typedef struct FailNth {
    int left;
} FailNth;

static Error fail_nth(void *context, KvOperation operation, KvTable table)
{
    (void)operation;
    (void)table;
    FailNth *fault = context;
    return fault->left-- == 0 ? ERROR_IO : ERROR_NONE;
}

TEST(migration_that_fails_leaves_the_old_store_whole)
{
    CLEANUP(store_fixture_close) StoreFixture *f = fixture_closed();
    place_fixture();
    int failures = 0;
    for (int n = 0;; n++) {
        FailNth fault = {n};
        f->options.seam = (KvSeam){fail_nth, &fault};
        Error error = open_store(f);
        if (access(path_of("before-format-3").text, F_OK) == 0) { // it was done: the rest is open's
            store_close(f->store);
            f->store = NULL;
            break;
        }
        CHECK_EQ(error, ERROR_IO);
        CHECK(f->store == NULL);
        CHECK(access(path_of("migrating").text, F_OK) != 0);
        run("gzip -dc '%s' | cmp - '%s'", FIXTURE, path_of("data.mdb").text);
        failures++;
    }
    CHECK(failures > 20);
    f->options.seam = (KvSeam){NULL, NULL};
    CHECK_EQ(open_store(f), ERROR_NONE);
    check_clean(f);
}
