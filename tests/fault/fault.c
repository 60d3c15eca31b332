// The seam.

#include "fault.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/files.h"

// A nudge asks for a session and finds none; then comes the slice, which asks for pending purges.
enum { NUDGE_NONE, NUDGE_ASKED, NUDGE_SLICE, NUDGE_DONE };

static void watch_writer(Fault *fault, KvOperation operation, KvTable table)
{
    bool is_first = fault->last_of_writer == KV_BEGIN_WRITE;
    if (operation == KV_BEGIN_WRITE) {
        fault->nudge_step = fault->nudge_step == NUDGE_ASKED ? NUDGE_SLICE : NUDGE_NONE;
    } else if (is_first && operation == KV_GET && table == TABLE_SESSIONS) {
        fault->nudge_step = NUDGE_ASKED;
    } else if (fault->nudge_step == NUDGE_SLICE) {
        fault->nudge_step = NUDGE_DONE;
        pthread_cond_signal(&fault->is_idle);
    }
    fault->last_of_writer = operation;
}

void fault_wait_idle(Fault *fault)
{
    pthread_mutex_lock(&fault->mutex);
    while (fault->nudge_step != NUDGE_DONE)
        pthread_cond_wait(&fault->is_idle, &fault->mutex);
    pthread_mutex_unlock(&fault->mutex);
}

static Error seam_before(void *context, KvOperation operation, KvTable table)
{
    Fault *fault = context;
    Error error = ERROR_NONE;
    pthread_mutex_lock(&fault->mutex);
    bool is_of_test = pthread_equal(pthread_self(), fault->test_thread);
    if (!is_of_test) watch_writer(fault, operation, table);
    bool is_counted =
        fault->error != ERROR_NONE && !fault->is_fired && !(fault->is_writer_only && is_of_test);
    if (is_counted && operation == KV_BEGIN_WRITE && fault->skip_begins > 0) fault->skip_begins--;
    if (is_counted && operation == KV_COMMITTED) {
        fault->has_committed = true;
    } else if (is_counted && fault->skip_begins == 0 && --fault->countdown == 0) {
        error = fault->error;
        fault->is_fired = true;
        fault->is_fired_at_commit = operation == KV_COMMIT;
    }
    // A slice that went through: the next one fails at its first call.
    if (fault->is_writer_only && fault->has_committed && !fault->is_fired) fault->countdown = 1;
    pthread_mutex_unlock(&fault->mutex);
    return error;
}

void fault_init(Fault *fault)
{
    *fault = (Fault){.test_thread = pthread_self()};
    pthread_mutex_init(&fault->mutex, NULL);
    pthread_cond_init(&fault->is_idle, NULL);
}

KvSeam fault_seam(Fault *fault)
{
    return (KvSeam){seam_before, fault};
}

static void arm(Fault *fault, Error error, size_t nth, size_t skip_begins, bool is_writer_only)
{
    pthread_mutex_lock(&fault->mutex);
    fault->error = error;
    fault->countdown = nth;
    fault->skip_begins = skip_begins;
    fault->is_writer_only = is_writer_only;
    fault->is_fired = fault->is_fired_at_commit = fault->has_committed = false;
    pthread_mutex_unlock(&fault->mutex);
}

void fault_arm(Fault *fault, Error error, size_t nth, bool is_writer_only)
{
    arm(fault, error, nth, 0, is_writer_only);
}

void fault_arm_slice(Fault *fault, Error error, size_t nth)
{
    arm(fault, error, nth, 2, /* is_writer_only= */ true);
}

bool fault_is_fired(Fault *fault)
{
    pthread_mutex_lock(&fault->mutex);
    bool is_fired = fault->is_fired;
    pthread_mutex_unlock(&fault->mutex);
    return is_fired;
}

bool fault_disarm(Fault *fault)
{
    pthread_mutex_lock(&fault->mutex);
    fault->error = ERROR_NONE;
    bool is_fired = fault->is_fired;
    pthread_mutex_unlock(&fault->mutex);
    return is_fired;
}

static Hash add_rows(KvTxn *txn, KvTable table, Hash picture)
{
    KvCursor *cursor;
    KvRow row;
    bool found;
    CHECK_EQ(kv_cursor_open(txn, table, &cursor), ERROR_NONE);
    CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
    while (found) {
        Hash of_row = hash_pair(row.key, row.value);
        picture = hash_pair(slice(picture.bytes, HASH_BYTES), slice(of_row.bytes, HASH_BYTES));
        CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
    }
    kv_cursor_close(cursor);
    return picture;
}

static void copy_data(const char *from, const char *to)
{
    StorePath path = store_path(to, KV_FILE_DATA);
    (void)unlink(path.text); // a file that is written over is flushed by ext4
    int source = open(store_path(from, KV_FILE_DATA).text, O_RDONLY | O_CLOEXEC);
    int copy = open(path.text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(source >= 0 && copy >= 0);
    char bytes[1 << 16];
    ssize_t size;
    while ((size = read(source, bytes, sizeof(bytes))) > 0)
        CHECK_EQ(write(copy, bytes, (size_t)size), size);
    CHECK_EQ(size, 0);
    close(source);
    close(copy);
}

// Of a copy of the file, because a store that has closed itself begins no transaction.
Hash store_picture(Engine *engine)
{
    StorePath directory = store_path(test_dir(), "picture");
    (void)mkdir(directory.text, 0700);
    copy_data(store_options(engine_store(engine))->directory, directory.text);
    KvOptions options = {
        .file = {.directory = directory.text, .map_bytes = (size_t)1 << 28, .read_only = true},
        .tables = STORE_TABLE_OPTIONS,
        .table_count = TABLE_COUNT,
    };
    Kv *kv;
    KvTxn *txn;
    CHECK_EQ(kv_open(&options, NULL, &kv), ERROR_NONE);
    CHECK_EQ(kv_begin(kv, /* is_write= */ false, NULL, &txn), ERROR_NONE);
    Hash picture = {{0}};
    for (KvTable table = 0; table < TABLE_COUNT; table++)
        picture = add_rows(txn, table, picture);
    kv_abort(&txn);
    kv_close(kv);
    return picture;
}

bool hash_equal(Hash a, Hash b)
{
    return memcmp(a.bytes, b.bytes, HASH_BYTES) == 0;
}
