#include "kv_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static const KvTableOptions TABLES[TABLE_COUNT] = {{1, "letters"}, {2, "numbers"}};
static int ready_pipe[2];

KvOptions fixture_options(void)
{
    return (KvOptions){
        .file = {.directory = test_dir(), .map_bytes = 64 << 20, .no_sync = true},
        .tables = TABLES,
        .table_count = TABLE_COUNT,
    };
}

Fixture fixture_open(void)
{
    KvOptions options = fixture_options();
    return (Fixture){.kv = open_ok(&options)};
}

void fixture_close(Fixture *fixture)
{
    kv_close(fixture->kv);
}

Kv *open_ok(const KvOptions *options)
{
    Kv *kv = NULL;
    ErrorDetail detail = {""};
    Error error = kv_open(options, &detail, &kv);
    CHECK_STR(detail.text, "");
    CHECK_EQ(error, ERROR_NONE);
    return kv;
}

Error open_error(const KvOptions *options, ErrorDetail *detail)
{
    Kv *kv = NULL;
    Error error = kv_open(options, detail, &kv);
    CHECK(error != ERROR_NONE);
    CHECK(kv == NULL);
    return error;
}

KvTxn *begin_ok(Kv *kv, bool is_write)
{
    KvTxn *txn = NULL;
    CHECK_EQ(kv_begin(kv, is_write, NULL, &txn), ERROR_NONE);
    return txn;
}

KvCursor *cursor_ok(KvTxn *txn, KvTable table)
{
    KvCursor *cursor = NULL;
    CHECK_EQ(kv_cursor_open(txn, table, &cursor), ERROR_NONE);
    return cursor;
}

void put_ok(KvTxn *txn, const char *key, const char *value)
{
    CHECK_EQ(kv_put(txn, LETTERS, slice_of(key), slice_of(value)), ERROR_NONE);
}

void store_ok(Kv *kv, const char *key, const char *value)
{
    KvTxn *txn = begin_ok(kv, /* is_write= */ true);
    put_ok(txn, key, value);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
}

void fill_pages(Kv *kv)
{
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        store_ok(kv, key, "some text that fills pages");
    }
}

const char *text_of(Slice bytes)
{
    static char text[512];
    snprintf(text, sizeof text, "%.*s", (int)bytes.size, (const char *)bytes.bytes);
    return text;
}

const char *text_at(KvTxn *txn, const char *key)
{
    bool found;
    Slice value;
    CHECK_EQ(kv_get(txn, LETTERS, slice_of(key), &found, &value), ERROR_NONE);
    return found ? text_of(value) : "-";
}

const char *stored_at(Kv *kv, const char *key)
{
    CLEANUP(kv_abortp) KvTxn *txn = begin_ok(kv, /* is_write= */ false);
    return text_at(txn, key);
}

static const char *answer(Error error, bool found, const KvRow *row)
{
    CHECK_EQ(error, ERROR_NONE);
    return found ? text_of(row->key) : "-";
}

const char *seek(KvCursor *cursor, const char *key)
{
    bool found;
    KvRow row;
    Error error = kv_seek(cursor, slice_of(key), &found, &row);
    return answer(error, found, &row);
}

const char *seek_before(KvCursor *cursor, const char *key)
{
    bool found;
    KvRow row;
    Error error = kv_seek_before(cursor, slice_of(key), &found, &row);
    return answer(error, found, &row);
}

const char *seek_last(KvCursor *cursor)
{
    bool found;
    KvRow row;
    Error error = kv_seek_last(cursor, &found, &row);
    return answer(error, found, &row);
}

const char *next(KvCursor *cursor)
{
    bool found;
    KvRow row;
    Error error = kv_next(cursor, &found, &row);
    return answer(error, found, &row);
}

const char *previous(KvCursor *cursor)
{
    bool found;
    KvRow row;
    Error error = kv_previous(cursor, &found, &row);
    return answer(error, found, &row);
}

int flip_bit(const void *bytes, size_t size, size_t at)
{
    char path[512];
    snprintf(path, sizeof path, "%s/data.mdb", test_dir());
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    CHECK(file >= 0 && fstat(file, &status) == 0);
    size_t left = (size_t)status.st_size;
    uint8_t *map = mmap(NULL, left, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(map != MAP_FAILED);
    int count = 0;
    uint8_t *end = map + left, *found;
    for (uint8_t *from = map; (found = memmem(from, (size_t)(end - from), bytes, size));
         from = found + 1, count++)
        found[at] ^= 1;
    CHECK_EQ(munmap(map, left), 0);
    CHECK_EQ(close(file), 0);
    return count;
}

int in_child(int (*body)(void *context), void *context)
{
    pid_t child = fork();
    if (child == 0) _exit(body(context));

    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void kill_when_ready(void (*body)(void))
{
    CHECK_EQ(pipe(ready_pipe), 0);
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(1);
    }
    close(ready_pipe[1]);
    char byte;
    ssize_t count = read(ready_pipe[0], &byte, 1);
    close(ready_pipe[0]);
    kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(count, 1); // 0: it ended before it was ready
}

void child_is_ready(void)
{
    if (write(ready_pipe[1], "", 1) != 1) _exit(2);
    for (;;)
        pause();
}
