// What the environment refuses is told with its cause: the log has the operation, the file and the
// system's answer, the caller is told the same and what to do. docs/durability.md lists the lines.
// cause_disk_test.c has what a disk refuses.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "cause.h"
#include "store/files.h"
#include "store/record.h"
#include "store/session.h"

// The test is linked with --wrap for these.
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

static _Thread_local size_t mallocs_until_failure; // 0: none fails
static _Thread_local size_t threads_until_failure; // likewise

void *__wrap_malloc(size_t size)
{
    if (mallocs_until_failure > 0 && --mallocs_until_failure == 0) return NULL;
    return __real_malloc(size);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    if (threads_until_failure > 0 && --threads_until_failure == 0) return EAGAIN;
    return __real_pthread_create(out, attributes, run, context);
}

// Makes each leaf page that holds `text` look like a page of a large value.
static void damage_leaves(const char *text)
{
    enum { PAGE_BYTES = 4096, FLAGS_AT = 10, LEAF = 2, LARGE = 4 };
    static uint8_t page[PAGE_BYTES];
    int file = open(store_path(test_dir(), KV_FILE_DATA).text, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    size_t damaged = 0;
    for (off_t at = 0; pread(file, page, PAGE_BYTES, at) == PAGE_BYTES; at += PAGE_BYTES) {
        if (page[FLAGS_AT] != LEAF || !memmem(page, PAGE_BYTES, text, strlen(text))) continue;
        uint8_t flags = LARGE;
        CHECK_EQ(pwrite(file, &flags, 1, at + FLAGS_AT), 1);
        damaged++;
    }
    close(file);
    CHECK(damaged > 0);
}

// Changes a bit of the value or the checksum of a row, on every page that has it.
static void damage_row(StoreTable table, Slice key)
{
    Key stored = {.size = 0};
    key_add_u8(&stored, (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[table].number));
    key_add(&stored, key.bytes, key.size);
    int file = open(store_path(test_dir(), KV_FILE_DATA).text, O_RDWR | O_CLOEXEC);
    struct stat status;
    CHECK(file >= 0 && fstat(file, &status) == 0);
    size_t size = (size_t)status.st_size;
    uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), *at = map;
    CHECK(map != MAP_FAILED);
    int count = 0;
    while ((at = memmem(at, (size_t)(map + size - at), stored.bytes, stored.size)) != NULL) {
        at += stored.size;
        at[6] ^= 1;
        count++;
    }
    CHECK(count > 0);
    CHECK_EQ(munmap(map, size), 0);
    CHECK_EQ(close(file), 0);
}

static void damage_head(const Cause *scene)
{
    Ulid id;
    CHECK(ulid_parse(slice_of(scene->session), &id));
    Key record_key = key_session(id, SESSION_ROW_HEAD);
    Key key = key_with_chunk(&record_key, 0);
    damage_row(TABLE_SESSIONS, key_slice(&key));
}

// The rows that each write reads, to see whether they are too old.
TEST(a_changed_oldest_event_or_operation_does_not_keep_others_from_writing)
{
    Cause scene;
    cause_open(&scene, 0);
    RenameSessionRequest rename = RENAME_SESSION_REQUEST__INIT;
    rename.session_id = scene.session;
    CHECK_EQ(cause_call(&scene, engine_request(METHOD_RENAME_SESSION, &rename, "op-1", 0)),
             ERROR_NONE);
    engine_close(scene.engine);
    Key event = key_event(1);
    damage_row(TABLE_EVENTS, key_slice(&event));
    Key operation = key_operation_age(1);
    damage_row(TABLE_OPERATIONS_BY_AGE, key_slice(&operation));
    CHECK_EQ(engine_open(&scene.options, NULL, &scene.engine), ERROR_NONE);
    CHECK_EQ(cause_call(&scene, engine_request(METHOD_RENAME_SESSION, &rename, "op-2", 0)),
             ERROR_NONE);
    CHECK_EQ(cause_append(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

TEST(a_changed_row_is_told_and_other_calls_go_on)
{
    Cause scene;
    cause_open(&scene, 0);
    CHECK_EQ(cause_append(&scene), ERROR_NONE);
    damage_head(&scene);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cause_append(&scene), ERROR_CORRUPT);
        CHECK(strstr(scene.said, "a row of sessions in ") != NULL);
        CHECK(strstr(scene.said, "its checksum is wrong (key ") != NULL);
        CHECK_EQ(cause_get_session(&scene), ERROR_CORRUPT);
    }
    cause_check_logged(&scene,
                       "method=AppendMessage error=CORRUPT detail=\"a row of sessions in DIR");
    engine_new_session(scene.engine, NULL, scene.session);
    CHECK_EQ(cause_append(&scene), ERROR_NONE);
    CHECK_EQ(cause_get_session(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

TEST(a_damaged_page_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    IdText message;
    engine_append_text(scene.engine, scene.session, "on a page to be damaged", message);
    damage_leaves("on a page to be damaged");
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = message;
    Slice bytes = engine_request(METHOD_GET_MESSAGE, &request, NULL, 0);
    CHECK_EQ(cause_call(&scene, bytes), ERROR_CORRUPT);
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=GetMessage error=CORRUPT detail=\"cannot read "
                       "DIR/data.mdb: MDB_CORRUPTED: Located page was wrong type\"");
    cause_check_said(&scene,
                     "cannot read DIR/data.mdb: MDB_CORRUPTED: Located page was wrong type; see "
                     "the server's log");
    engine_close(scene.engine);
}

// The row of a session in TABLE_SESSIONS gets other bytes.
static void damage_session(Cause *scene)
{
    engine_close(scene->engine);
    Store *store;
    Txn txn;
    uint64_t format;
    Arena arena;
    arena_init(&arena, 1 << 20);
    CHECK_EQ(store_attach(&scene->options.store, NULL, &store, &format), ERROR_NONE);
    CHECK_EQ(store_load(store, /* is_new= */ false, NULL), ERROR_NONE);
    CHECK_EQ(txn_begin(store, /* is_write= */ true, &arena, NULL, &txn), ERROR_NONE);
    Ulid id;
    CHECK(ulid_parse(slice_of(scene->session), &id));
    Key key = key_session(id, SESSION_ROW_SETTINGS);
    Slice wrong = slice_of("\377\377 no protobuf");
    CHECK_EQ(record_put(&txn, TABLE_SESSIONS, &key, wrong), ERROR_NONE);
    CHECK_EQ(txn_commit(&txn), ERROR_NONE);
    arena_free(&arena);
    store_close(store);
    CHECK_EQ(engine_open(&scene->options, NULL, &scene->engine), ERROR_NONE);
}

TEST(a_damaged_record_is_told_apart_from_a_damaged_page)
{
    Cause scene;
    cause_open(&scene, 0);
    damage_session(&scene);
    RenameSessionRequest request = RENAME_SESSION_REQUEST__INIT;
    request.session_id = scene.session;
    request.slug = "renamed";
    Slice bytes = engine_request(METHOD_RENAME_SESSION, &request, NULL, 0);
    CHECK_EQ(cause_call(&scene, bytes), ERROR_CORRUPT);
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=RenameSession error=CORRUPT detail=\"a stored "
                       "Session cannot be decoded\"");
    cause_check_said(&scene, "a stored Session cannot be decoded; see the server's log");
    engine_close(scene.engine);
}

// Whatever of a call finds no memory, the answer is the same kind, and its cause is told. A read
// runs on the thread whose mallocs fail.
TEST(memory_that_is_missing_is_told)
{
    Cause scene;
    cause_open(&scene, 0);
    for (size_t nth = 1;; nth++) {
        Slice bytes = cause_get_session_request(&scene);
        mallocs_until_failure = nth;
        Error error = cause_call(&scene, bytes);
        if (mallocs_until_failure > 0) break;
        CHECK_EQ(error, ERROR_OUT_OF_MEMORY);
    }
    mallocs_until_failure = 0;
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=GetSession error=OUT_OF_MEMORY detail=\"no "
                       "memory to decode a GetSessionRequest of ");
    cause_check_logged(&scene,
                       "msg=\"call failed\" method=GetSession error=OUT_OF_MEMORY "
                       "detail=\"cannot begin a transaction on DIR/data.mdb: Cannot allocate "
                       "memory (errno 12)\"");
    engine_close(scene.engine);
}

TEST(reader_slots_that_are_all_taken_are_told)
{
    static Txn readers[READERS_MAX];
    Cause scene;
    cause_open(&scene, 0);
    Store *store = engine_store(scene.engine);
    for (size_t i = 0; i < READERS_MAX; i++)
        CHECK_EQ(txn_begin(store, /* is_write= */ false, NULL, NULL, &readers[i]), ERROR_NONE);
    CHECK_EQ(cause_get_session(&scene), ERROR_UNAVAILABLE);
    cause_check_said(&scene,
                     "cannot begin a transaction on DIR/data.mdb: MDB_READERS_FULL: Environment "
                     "maxreaders limit reached");
    for (size_t i = 0; i < READERS_MAX; i++)
        txn_abort(&readers[i]);
    CHECK_EQ(cause_get_session(&scene), ERROR_NONE);
    engine_close(scene.engine);
}

// Opens the store again and says why it cannot.
static Error open_refused(Cause *scene, char said[ERROR_DETAIL_BYTES_MAX])
{
    ErrorDetail detail = {""};
    engine_close(scene->engine);
    Error error = engine_open(&scene->options, &detail, &scene->engine);
    memcpy(said, detail.text, sizeof(detail.text));
    return error;
}

TEST(threads_that_cannot_be_started_are_told)
{
    static const char *const PURPOSES[] = {"flush the store", "keep the log", "rerun waiting calls",
                                           "write"};
    Cause scene;
    char wanted[ERROR_DETAIL_BYTES_MAX];
    cause_open(&scene, FLUSH_MS_MAX);
    for (size_t i = 0; i < sizeof(PURPOSES) / sizeof(*PURPOSES); i++) {
        threads_until_failure = i + 1;
        CHECK_EQ(open_refused(&scene, scene.said), ERROR_OUT_OF_MEMORY);
        snprintf(wanted, sizeof(wanted),
                 "cannot start a thread to %s: Resource temporarily unavailable (errno 11)",
                 PURPOSES[i]);
        CHECK_STR(scene.said, wanted);
        CHECK_EQ(engine_open(&scene.options, NULL, &scene.engine), ERROR_NONE);
    }
    engine_close(scene.engine);
}

TEST(descriptors_that_are_missing_are_told)
{
    Cause scene;
    cause_open(&scene, 0);
    struct rlimit limit, none = {0};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    engine_close(scene.engine);
    scene.engine = NULL;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(open_refused(&scene, scene.said), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cause_check_said(&scene, "cannot open DIR/tine.lock: Too many open files (errno 24)");
}
