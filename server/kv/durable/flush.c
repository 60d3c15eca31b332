// The flusher, and the flushes of opening and closing. flush.h has the idea.
//
// The tricky part is which meta page belongs to the pin. LMDB writes the two in turn, so the page
// may be gone two commits later. It is copied while a write transaction that writes nothing keeps
// the others out, for some microseconds. LMDB's lock is never held while the disk works.

#include "kv/durable/flush.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush_note.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/meta_page.h"
#include "kv/durable/ownership.h"
#include "kv/durable/reader_slots.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/directory.h"
#include "os/thread.h"
#include "report/log.h"

// What the flusher's thread waits for. A commit wakes it for nothing else.
enum { WAITS_FOR_NOTHING, WAITS_FOR_A_COMMIT, WAITS_FOR_MANY };

struct Flusher {
    DataFile *file;
    pthread_t thread;
    bool has_thread, is_relaxed;
    int64_t interval_ns;
    void (*flushed)(void *context, uint64_t position); // NULL: nobody wants to know
    void *flushed_context;

    pthread_mutex_t flush_mutex; // held by the thread that flushes; guards these
    ErrorDetail failure;         // set before has_failed, and never again
    FlushNotes notes;
    FlushNote last; // the newest note that is on the disk; .state 0: there is none
    // Both keep their reader slot when they read nothing, so a flush never lacks one.
    MDB_txn *pin, *spare;
    int data_file;
    size_t page_bytes;

    // Written by commits and read by all.
    _Alignas(64) atomic_uint_fast64_t committed_txn;
    atomic_uint_fast64_t committed_position; // of the log
    atomic_uint_fast64_t unflushed_bytes;    // about, of commits after the last flush began
    atomic_uint_fast64_t flushing_bytes;     // about, of commits that the running flush is for
    atomic_int_fast64_t oldest_ns;           // when the first of them was; 0: none
    atomic_int waits_for;
    atomic_bool is_wanted; // before the next write, however little there is

    _Alignas(64) atomic_uint_fast64_t flushed_txn;
    atomic_bool has_failed;

    pthread_mutex_t mutex; // guards what the thread waits for
    pthread_cond_t wakes;
    bool is_stopping;
};

static Error pin_newest(Flusher *flusher, FlushNote *note);
static Error flush_once(Flusher *flusher);
static Error mark_clean(Flusher *flusher);
static Error flush_and_note(Flusher *flusher, FlushNote *note);
static void flusher_free(DataFile *file);
static void *flusher_main(void *context);

// Logs a failure and notes it for good, unless there was one before. Who sees it noted finds it in
// the log.
static Error fail(Flusher *flusher, int code, const char *operation, const char *name)
{
    if (atomic_load(&flusher->has_failed)) return ERROR_IO;
    (void)lmdb_fail(&flusher->failure, code, operation, flusher->file->directory, name);
    log_write(LOG_ERROR, "the store cannot be flushed", "detail=\"%s\"", flusher->failure.text);
    atomic_store(&flusher->has_failed, true);
    return ERROR_IO;
}

// Notes for good that the file is not this process's any more (ownership.h). A flush would promise
// what it cannot keep, and its note could hide that of the other process.
static Error fail_lost(Flusher *flusher, const ErrorDetail *cause)
{
    if (!atomic_load(&flusher->has_failed)) {
        flusher->failure = *cause;
        atomic_store(&flusher->has_failed, true);
    }
    return ERROR_IO;
}

// Writes to `detail` why a flush returned `error`.
static Error explain(const Flusher *flusher, Error error, ErrorDetail *detail)
{
    return error ? error_say(detail, error, "%s", flusher->failure.text) : ERROR_NONE;
}

static Error flush_new(DataFile *file, const char *directory, ErrorDetail *detail)
{
    int data_file;
    int code = mdb_env_get_fd(file->lmdb, &data_file);
    if (code == 0 && fsync(data_file) != 0) code = errno;
    if (code) return lmdb_fail(detail, code, "flush", directory, KV_FILE_DATA);
    return directory_flush(directory, detail);
}

static Flusher *flusher_new(DataFile *file, const DataFileOptions *options)
{
    Flusher *flusher = aligned_alloc(_Alignof(Flusher), sizeof(Flusher));
    if (!flusher) return NULL;
    memset(flusher, 0, sizeof(*flusher));
    flusher->file = file;
    flusher->is_relaxed = options->flush_ms > 0;
    unsigned interval_ms = options->flush_data_ms ? options->flush_data_ms : FLUSH_DATA_MS;
    flusher->interval_ns = (int64_t)interval_ms * 1000000;
    flusher->notes.file = -1;
    pthread_mutex_init(&flusher->flush_mutex, NULL);
    pthread_mutex_init(&flusher->mutex, NULL);
    condition_init(&flusher->wakes);
    return flusher;
}

// Takes a reader slot. The transaction reads nothing yet.
static int take_slot(DataFile *file, MDB_txn **out_reader)
{
    int code = mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, out_reader);
    if (code == MDB_READERS_FULL && reader_slots_clear_dead(file) > 0) {
        code = mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, out_reader);
    }
    if (code == 0) mdb_txn_reset(*out_reader);
    return code;
}

// Leaves file->flusher to flusher_free if it fails.
static Error flusher_make(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    Flusher *flusher = file->flusher = flusher_new(file, options);
    if (!flusher) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory for the flusher");
    MDB_stat pages;
    int code = mdb_env_get_fd(file->lmdb, &flusher->data_file);
    if (code == 0) code = mdb_env_stat(file->lmdb, &pages);
    if (code == 0) code = take_slot(file, &flusher->pin);
    if (code == 0) code = take_slot(file, &flusher->spare);
    if (code) return lmdb_fail(detail, code, "read", options->directory, KV_FILE_DATA);
    flusher->page_bytes = pages.ms_psize;
    Error error = flush_note_open(options->directory, /* create= */ true, detail, &flusher->notes);
    if (error) return error;
    flush_note_boot_id(options->boot_id, flusher->notes.boot_id);
    if (options->flush_ms > 0 && !*flusher->notes.boot_id) {
        log_write(LOG_WARNING,
                  "the kernel does not say which boot it is: the death of the process "
                  "will take the store back to its last flush",
                  "directory=\"%s\"", options->directory);
    }
    flusher->notes.inode = file->data_id.inode;
    bool found;
    return flush_note_read(&flusher->notes, &found, &flusher->last, detail);
}

static Error flush_if_new(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    MDB_envinfo info;
    int code = mdb_env_info(file->lmdb, &info);
    if (code) return lmdb_fail(detail, code, "read", options->directory, KV_FILE_DATA);
    return info.me_last_txnid > 0 ? ERROR_NONE : flush_new(file, options->directory, detail);
}

Error flush_start(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    if (options->no_sync || options->read_only) return ERROR_NONE;
    Error error = flush_if_new(file, options, detail);
    if (!error) error = flusher_make(file, options, detail);
    if (error) return error;
    Flusher *flusher = file->flusher;
    error = flush_once(flusher);
    if (error) return explain(flusher, error, detail);
    atomic_store(&flusher->committed_txn, atomic_load(&flusher->flushed_txn));
    error = thread_start(&flusher->thread, flusher_main, flusher, "flush the store", detail);
    flusher->has_thread = !error;
    return error;
}

void flush_on_flushed(DataFile *file, void (*flushed)(void *context, uint64_t position),
                      void *context)
{
    Flusher *flusher = file->flusher;
    pthread_mutex_lock(&flusher->flush_mutex);
    flusher->flushed = flushed;
    flusher->flushed_context = context;
    pthread_mutex_unlock(&flusher->flush_mutex);
}

// Flushes everything, the newest meta page too. data.mdb is then complete by itself, and
// flushed.mdb says so.
static Error mark_clean(Flusher *flusher)
{
    FlushNote clean = {.state = FLUSH_NOTE_CLEAN,
                       .is_set_back = atomic_load(&flusher->file->is_set_back)};
    if (flusher->notes.file < 0 || atomic_load(&flusher->has_failed)) return ERROR_IO;
    if (ownership_check_name(flusher->file, NULL)) return ERROR_IO;
    return flush_and_note(flusher, &clean);
}

void flush_stop(DataFile *file)
{
    Flusher *flusher = file->flusher;
    if (!flusher) return;
    if (flusher->has_thread) {
        pthread_mutex_lock(&flusher->mutex);
        flusher->is_stopping = true;
        pthread_cond_signal(&flusher->wakes);
        pthread_mutex_unlock(&flusher->mutex);
        pthread_join(flusher->thread, NULL);
    }
    (void)mark_clean(flusher); // if it fails, the next open does it
    flusher_free(file);
}

static void flusher_free(DataFile *file)
{
    Flusher *flusher = file->flusher;
    if (flusher->pin) mdb_txn_abort(flusher->pin);
    if (flusher->spare) mdb_txn_abort(flusher->spare);
    flush_note_close(&flusher->notes);
    pthread_mutex_destroy(&flusher->flush_mutex);
    pthread_mutex_destroy(&flusher->mutex);
    pthread_cond_destroy(&flusher->wakes);
    free(flusher);
    file->flusher = NULL;
}

// Begins to read the newest state with the spare, and copies the meta page of that state.
static Error pin_newest(Flusher *flusher, FlushNote *note)
{
    MDB_env *env = flusher->file->lmdb;
    MDB_txn *writer;
    int code = mdb_txn_begin(env, NULL, 0, &writer); // nobody commits until this is aborted
    if (code) return fail(flusher, code, "begin a transaction on", KV_FILE_DATA);
    ErrorDetail cause;
    if (ownership_check_txn(flusher->file, mdb_txn_id(writer), &cause)) {
        mdb_txn_abort(writer);
        return fail_lost(flusher, &cause);
    }
    code = mdb_txn_renew(flusher->spare);
    if (code == 0) {
        note->txn_id = mdb_txn_id(flusher->spare);
        code = meta_page_take(flusher->data_file, flusher->page_bytes, note);
        uint64_t bytes = atomic_exchange(&flusher->unflushed_bytes, 0);
        atomic_fetch_add(&flusher->flushing_bytes, bytes);
        atomic_store(&flusher->oldest_ns, 0);
    }
    mdb_txn_abort(writer);
    if (code == 0) return ERROR_NONE;
    return fail(flusher, code, "read", KV_FILE_DATA);
}

// Undoes what a flush that failed made of its note. If the flush of data.mdb failed, the kernel may
// call the pages clean that it could not write, show them for as long as it likes, and flush "all"
// the next time: what this boot shows is no proof of what is on the disk. So the last state that is
// there goes over the failed note, and, if data.mdb is in doubt, as that of another boot: the next
// open puts it back. The other note has the same state, and is not touched.
static void fall_back(Flusher *flusher, bool is_data_in_doubt)
{
    FlushNote last = flusher->last;
    if (last.state != FLUSH_NOTE_FLUSHED) return; // nothing was committed without a flush yet
    if (is_data_in_doubt) snprintf(last.boot_id, sizeof(last.boot_id), "%s", BOOT_ID_NONE);
    flusher->notes.sequence = last.sequence;
    int code = flush_note_write(&flusher->notes, &last);
    if (code == 0) return;
    ErrorDetail detail;
    (void)lmdb_fail(&detail, code, "write", flusher->file->directory, KV_FILE_FLUSHED);
    log_write(LOG_ERROR, "the last flush could not be noted either", "detail=\"%s\"", detail.text);
}

// Flushes data.mdb, and then notes it in flushed.mdb.
static Error flush_and_note(Flusher *flusher, FlushNote *note)
{
    Error error;
    if (fdatasync(flusher->data_file) != 0) {
        error = fail(flusher, errno, "flush", KV_FILE_DATA);
        fall_back(flusher, /* is_data_in_doubt= */ true);
        return error;
    }
    int code = flush_note_write(&flusher->notes, note);
    if (code) {
        error = fail(flusher, code, "write", KV_FILE_FLUSHED);
        fall_back(flusher, /* is_data_in_doubt= */ false);
        return error;
    }
    flusher->last = *note;
    return ERROR_NONE;
}

// Flushes what was committed until now. The caller must hold `flush_mutex`.
static Error flush_once(Flusher *flusher)
{
    ErrorDetail cause;
    if (atomic_load(&flusher->has_failed)) return ERROR_IO;
    if (ownership_check_name(flusher->file, &cause)) return fail_lost(flusher, &cause);
    FlushNote note = {.state = FLUSH_NOTE_FLUSHED,
                      .is_relaxed = flusher->is_relaxed,
                      .is_set_back = atomic_load(&flusher->file->is_set_back)};
    int64_t oldest_ns = atomic_load(&flusher->oldest_ns);
    uint64_t position = atomic_load(&flusher->committed_position);
    Error error = pin_newest(flusher, &note);
    if (error) {
        mdb_txn_reset(flusher->spare);
        return error;
    }
    // This order is what everything rests on: the pages, then the note, then the pin before.
    error = flush_and_note(flusher, &note);
    if (error) { // the state before stays pinned, because it is the one on the disk
        atomic_store(&flusher->oldest_ns, oldest_ns);
        mdb_txn_reset(flusher->spare);
        return error;
    }
    atomic_store(&flusher->flushing_bytes, 0);
    mdb_txn_reset(flusher->pin);
    MDB_txn *pin = flusher->spare;
    flusher->spare = flusher->pin;
    flusher->pin = pin;
    atomic_store(&flusher->file->pin_txn, note.txn_id);
    atomic_store(&flusher->flushed_txn, note.txn_id);
    if (flusher->flushed) flusher->flushed(flusher->flushed_context, position);
    return ERROR_NONE;
}

static Error flush_up_to(Flusher *flusher, uint64_t txn_id)
{
    Error error = ERROR_NONE;
    pthread_mutex_lock(&flusher->flush_mutex);
    // The thread that had the mutex may have flushed it already.
    if (atomic_load(&flusher->flushed_txn) < txn_id) error = flush_once(flusher);
    pthread_mutex_unlock(&flusher->flush_mutex);
    return error;
}

Error flush_commits(DataFile *file, ErrorDetail *detail)
{
    if (data_file_is_of_parent(file)) return data_file_refuse_child(detail);
    Flusher *flusher = file->flusher;
    if (!flusher) return ERROR_NONE;
    Error error = flush_up_to(flusher, atomic_load(&flusher->committed_txn));
    return explain(flusher, error, detail);
}

void flush_again(DataFile *file)
{
    pthread_mutex_lock(&file->flusher->flush_mutex);
    (void)flush_once(file->flusher);
    pthread_mutex_unlock(&file->flusher->flush_mutex);
}

bool flush_has_failed(const DataFile *file)
{
    return file->flusher && atomic_load(&file->flusher->has_failed);
}

void flush_tell_failure(const DataFile *file, ErrorDetail *detail)
{
    *detail = file->flusher->failure;
}

static void wake(Flusher *flusher)
{
    if (atomic_exchange(&flusher->waits_for, WAITS_FOR_NOTHING) == WAITS_FOR_NOTHING) return;
    pthread_mutex_lock(&flusher->mutex);
    pthread_cond_signal(&flusher->wakes);
    pthread_mutex_unlock(&flusher->mutex);
}

void flush_committed(Flusher *flusher, uint64_t txn_id, uint64_t bytes, uint64_t position)
{
    atomic_store(&flusher->committed_position, position);
    if (atomic_load_explicit(&flusher->oldest_ns, memory_order_relaxed) == 0) {
        atomic_store(&flusher->oldest_ns, clock_monotonic_ns());
    }
    uint64_t unflushed = atomic_fetch_add(&flusher->unflushed_bytes, bytes) + bytes;
    uint64_t before = atomic_load(&flusher->committed_txn);
    while (before < txn_id &&
           !atomic_compare_exchange_weak(&flusher->committed_txn, &before, txn_id))
        continue;
    // The flusher sets `waits_for` first, and then checks whether it is there already.
    int waits_for = atomic_load(&flusher->waits_for);
    if (waits_for == WAITS_FOR_A_COMMIT ||
        (waits_for == WAITS_FOR_MANY && unflushed >= UNFLUSHED_BYTES_BEGIN)) {
        wake(flusher);
    }
}

void flush_want(Flusher *flusher)
{
    atomic_store(&flusher->is_wanted, true);
}

static bool must_flush(Flusher *flusher)
{
    uint64_t bytes = atomic_load_explicit(&flusher->unflushed_bytes, memory_order_relaxed) +
                     atomic_load_explicit(&flusher->flushing_bytes, memory_order_relaxed);
    return bytes >= UNFLUSHED_BYTES_MAX ||
           atomic_load_explicit(&flusher->is_wanted, memory_order_relaxed);
}

bool flush_is_behind(const DataFile *file)
{
    return file->flusher && must_flush(file->flusher);
}

Error flush_admit(Flusher *flusher, ErrorDetail *detail)
{
    Error error = atomic_load(&flusher->has_failed) ? ERROR_IO : ERROR_NONE;
    if (__builtin_expect(!error && !must_flush(flusher), true)) return ERROR_NONE;
    if (!error) {
        atomic_store(&flusher->is_wanted, false);
        error = flush_up_to(flusher, atomic_load(&flusher->committed_txn));
    }
    return explain(flusher, error, detail);
}

static bool is_behind(Flusher *flusher)
{
    return atomic_load(&flusher->committed_txn) > atomic_load(&flusher->flushed_txn);
}

// Sleeps while there is nothing to flush, without a timer. The caller must hold `mutex`.
static void wait_for_a_commit(Flusher *flusher)
{
    while (!flusher->is_stopping) {
        atomic_store(&flusher->waits_for, WAITS_FOR_A_COMMIT);
        if (is_behind(flusher) && !atomic_load(&flusher->has_failed)) return;
        pthread_cond_wait(&flusher->wakes, &flusher->mutex);
    }
}

// Waits for more commits, until the interval is over or there is enough. The caller must hold
// `mutex`.
static void wait_for_many(Flusher *flusher, int64_t begun_ns)
{
    int64_t oldest_ns = atomic_load(&flusher->oldest_ns);
    int64_t until_ns = (oldest_ns > begun_ns ? oldest_ns : begun_ns) + flusher->interval_ns;
    bool is_late = false;
    while (!is_late && !flusher->is_stopping) {
        atomic_store(&flusher->waits_for, WAITS_FOR_MANY);
        if (atomic_load(&flusher->unflushed_bytes) >= UNFLUSHED_BYTES_BEGIN) return;
        is_late = !condition_wait(&flusher->wakes, &flusher->mutex, until_ns);
    }
}

static void *flusher_main(void *context)
{
    Flusher *flusher = context;
    int64_t begun_ns = 0;
    pthread_mutex_lock(&flusher->mutex);
    for (;;) {
        wait_for_a_commit(flusher);
        wait_for_many(flusher, begun_ns);
        atomic_store(&flusher->waits_for, WAITS_FOR_NOTHING);
        if (flusher->is_stopping) break;
        pthread_mutex_unlock(&flusher->mutex);
        begun_ns = clock_monotonic_ns();
        (void)flush_up_to(flusher, atomic_load(&flusher->committed_txn)); // a failure is kept
        pthread_mutex_lock(&flusher->mutex);
    }
    pthread_mutex_unlock(&flusher->mutex);
    return NULL;
}
