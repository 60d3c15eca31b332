// The flusher of a relaxed store: see kv_lmdb_flush.h for the idea, kv_lmdb_slot.h for the file.
//
// The tricky part is which meta page belongs to the pin. LMDB writes the two in turn, so the page
// may be gone two commits later; it is copied while a write transaction that writes nothing keeps
// the others out, for some microseconds. Nothing here holds LMDB's lock while the disk works.

#include "kv/kv_lmdb_flush.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/kv_lmdb_slot.h"
#include "os/clock.h"
#include "os/thread.h"
#include "report/log.h"

// What the flusher's thread sleeps for; a commit wakes it for nothing else.
enum { WAITS_FOR_NOTHING, WAITS_FOR_A_COMMIT, WAITS_FOR_MANY };

struct KvFlusher {
    Kv *kv;
    pthread_t thread;
    bool has_thread;
    int64_t interval_ns;

    pthread_mutex_t flush_mutex; // held by whoever flushes; guards these
    SlotFile slots;
    Slot last; // that is on the disk; .state 0: there is none
    MDB_txn *pin;
    int data_file;
    size_t page_bytes;

    // Written by commits and read by all.
    _Alignas(64) atomic_uint_fast64_t committed_txn;
    atomic_uint_fast64_t unflushed_bytes; // about so many, of commits after the last flush began
    atomic_uint_fast64_t flushing_bytes;  // of those that the running flush is for
    atomic_int_fast64_t oldest_ns;        // when the first of them came; 0: none
    atomic_int waits_for;
    atomic_bool is_wanted; // before the next write, however little there is

    _Alignas(64) atomic_uint_fast64_t flushed_txn;
    atomic_bool has_failed;

    pthread_mutex_t mutex; // guards what the thread waits for
    pthread_cond_t wakes;
    bool is_stopping;
};

static Error pin_newest(KvFlusher *flusher, MDB_txn **out_pin, Slot *slot);
static Error flush_once(KvFlusher *flusher);
static Error mark_clean(KvFlusher *flusher);
static Error flush_and_say(KvFlusher *flusher, Slot *slot);
static void flusher_free(Kv *kv);
static void *flusher_main(void *context);

static Error fail(KvFlusher *flusher, const char *what)
{
    int code = errno;
    if (!atomic_exchange(&flusher->has_failed, true)) {
        log_write(LOG_ERROR, "the store cannot be flushed", "step=\"%s\" error=\"%s\"", what,
                  strerror(code));
    }
    return ERROR_IO;
}

static int sync_directory(const char *path)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return errno;
    // Some file systems cannot, and need not.
    int code = fsync(directory) != 0 && errno != EINVAL ? errno : 0;
    close(directory);
    return code;
}

// The file with its first pages, and its name.
static Error flush_new_file(Kv *kv, const char *directory, ErrorDetail *detail)
{
    int file;
    int code = mdb_env_get_fd(kv->env, &file);
    if (code == 0 && fsync(file) != 0) code = errno;
    if (code == 0) code = sync_directory(directory);
    if (code == 0) return ERROR_NONE;
    return error_say(detail, kv_error_of(code), "cannot flush %s/data.mdb: %s", directory,
                     mdb_strerror(code));
}

// A process that died in the middle of a commit may have left it in the page cache alone. Whoever
// asks again is answered out of it, without a commit, so it must be on the disk as well.
static Error flush_left(Kv *kv, const char *directory, ErrorDetail *detail)
{
    int file;
    int code = mdb_env_get_fd(kv->env, &file);
    if (code == 0 && fdatasync(file) != 0) code = errno;
    if (code == 0) return ERROR_NONE;
    return error_say(detail, kv_error_of(code), "cannot flush %s/data.mdb: %s", directory,
                     mdb_strerror(code));
}

static Error flusher_make(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    KvFlusher *flusher = aligned_alloc(_Alignof(KvFlusher), sizeof(KvFlusher));
    if (!flusher) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    memset(flusher, 0, sizeof(*flusher));
    flusher->kv = kv;
    flusher->interval_ns = (int64_t)options->flush_ms * 1000000;
    pthread_mutex_init(&flusher->flush_mutex, NULL);
    pthread_mutex_init(&flusher->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    kv->flusher = flusher;
    MDB_stat pages;
    int code = mdb_env_get_fd(kv->env, &flusher->data_file);
    if (code == 0) code = mdb_env_stat(kv->env, &pages);
    flusher->slots.file = -1;
    if (code == 0) flusher->page_bytes = pages.ms_psize;
    if (code) return error_say(detail, kv_error_of(code), "%s", mdb_strerror(code));
    Error error = slot_open(options->directory, /* create= */ true, detail, &flusher->slots);
    if (error) return error;
    slot_boot_id(options->boot_id, flusher->slots.boot_id);
    if (options->flush_ms > 0 && !*flusher->slots.boot_id) {
        log_write(LOG_WARNING,
                  "the kernel does not say which boot it is: the death of the process "
                  "will take the store back to its last flush",
                  "directory=\"%s\"", options->directory);
    }
    flusher->slots.inode = kv->data_file.inode;
    bool found;
    return slot_read(&flusher->slots, &found, &flusher->last, detail);
}

Error flush_start(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    if (options->no_sync || options->read_only) return ERROR_NONE;
    MDB_envinfo info = {.me_last_txnid = 0};
    Error error = kv_error_of(mdb_env_info(kv->env, &info));
    bool is_relaxed = options->flush_ms > 0;
    bool is_new = info.me_last_txnid == 0;
    if (!error && is_new) error = flush_new_file(kv, options->directory, detail);
    if (!error && !(is_new || is_relaxed || kv->was_relaxed))
        error = flush_left(kv, options->directory, detail);
    if (error || !(is_relaxed || kv->was_relaxed)) return error;
    error = flusher_make(kv, options, detail);
    if (error) return error;
    if (!is_relaxed) {
        error = mark_clean(kv->flusher);
        flusher_free(kv);
        return error ? error_say(detail, error, "cannot flush %s/data.mdb", options->directory)
                     : ERROR_NONE;
    }
    error = flush_once(kv->flusher);
    if (error) return error_say(detail, error, "cannot flush %s/data.mdb", options->directory);
    atomic_store(&kv->flusher->committed_txn, atomic_load(&kv->flusher->flushed_txn));
    error =
        thread_start(&kv->flusher->thread, flusher_main, kv->flusher, "flush the store", detail);
    if (error) return error;
    kv->flusher->has_thread = true;
    return ERROR_NONE;
}

// Flushes all there is, the newest meta page too: data.mdb needs no other, and flushed.mdb says so.
static Error mark_clean(KvFlusher *flusher)
{
    Slot clean = {.state = SLOT_CLEAN, .is_set_back = atomic_load(&flusher->kv->is_set_back)};
    if (flusher->slots.file < 0 || atomic_load(&flusher->has_failed)) return ERROR_IO;
    return flush_and_say(flusher, &clean);
}

void flush_stop(Kv *kv)
{
    KvFlusher *flusher = kv->flusher;
    if (!flusher) return;
    if (flusher->has_thread) {
        pthread_mutex_lock(&flusher->mutex);
        flusher->is_stopping = true;
        pthread_cond_signal(&flusher->wakes);
        pthread_mutex_unlock(&flusher->mutex);
        pthread_join(flusher->thread, NULL);
    }
    (void)mark_clean(flusher); // what it could not, the next open does
    flusher_free(kv);
}

static void flusher_free(Kv *kv)
{
    KvFlusher *flusher = kv->flusher;
    if (flusher->pin) mdb_txn_abort(flusher->pin);
    slot_close(&flusher->slots);
    pthread_mutex_destroy(&flusher->flush_mutex);
    pthread_mutex_destroy(&flusher->mutex);
    pthread_cond_destroy(&flusher->wakes);
    free(flusher);
    kv->flusher = NULL;
}

void kv_forget_set_back(Kv *kv, const char *directory)
{
    atomic_store(&kv->is_set_back, false);
    if (kv->flusher) { // a flush says so, and has what was committed until now
        pthread_mutex_lock(&kv->flusher->flush_mutex);
        (void)flush_once(kv->flusher); // kv_has_failed; without a free reader slot, the next one
        pthread_mutex_unlock(&kv->flusher->flush_mutex);
        return;
    }
    ErrorDetail detail;
    SlotFile slots;
    Slot slot;
    bool found;
    if (slot_open(directory, /* create= */ false, &detail, &slots) || slots.file < 0) return;
    // If this fails, the next open hears of the same once more.
    if (slot_read(&slots, &found, &slot, &detail) == ERROR_NONE && found) {
        slot.is_set_back = false;
        (void)slot_write(&slots, &slot);
    }
    slot_close(&slots);
}

// Begins a read of the newest state, and copies the meta page that is this state's.
static Error pin_newest(KvFlusher *flusher, MDB_txn **out_pin, Slot *slot)
{
    MDB_env *env = flusher->kv->env;
    MDB_txn *writer;
    int code = mdb_txn_begin(env, NULL, 0, &writer); // nobody commits until this is aborted
    if (code) {
        errno = code;
        return fail(flusher, "begin");
    }
    code = mdb_txn_begin(env, NULL, MDB_RDONLY, out_pin);
    if (code == MDB_READERS_FULL && kv_clear_dead_readers(flusher->kv) > 0) {
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, out_pin);
    }
    if (code == 0) {
        slot->txn_id = mdb_txn_id(*out_pin);
        code = slot_take_meta(flusher->data_file, flusher->page_bytes, slot);
        uint64_t bytes = atomic_exchange(&flusher->unflushed_bytes, 0);
        atomic_fetch_add(&flusher->flushing_bytes, bytes);
        atomic_store(&flusher->oldest_ns, 0);
    }
    mdb_txn_abort(writer);
    if (code == MDB_READERS_FULL) return ERROR_UNAVAILABLE; // tried again at the next flush
    if (code == 0) return ERROR_NONE;
    errno = code;
    return fail(flusher, "pin");
}

// A flush has failed. If it was data.mdb's, the kernel may call the pages clean that it could not
// write, show them for as long as it likes, and flush "all" the next time: what is to be seen in
// this boot is no proof of what is on the disk. So the last state that is goes over whatever the
// flush made of its place in flushed.mdb, and, if data.mdb is in doubt, as that of another boot:
// the next open puts it back. The other place has the same state, and is not touched.
static void fall_back(KvFlusher *flusher, bool is_data_in_doubt)
{
    Slot last = flusher->last;
    if (last.state != SLOT_FLUSHED) return; // nothing was committed without a flush yet
    if (is_data_in_doubt) snprintf(last.boot_id, sizeof(last.boot_id), "%s", SLOT_NO_BOOT);
    flusher->slots.sequence = last.sequence;
    int code = slot_write(&flusher->slots, &last);
    if (code == 0) return;
    log_write(LOG_ERROR, "the last flush could not be noted either", "error=\"%s\"",
              strerror(code));
}

// Flushes data.mdb, and then says so in flushed.mdb.
static Error flush_and_say(KvFlusher *flusher, Slot *slot)
{
    Error error;
    if (fdatasync(flusher->data_file) != 0) {
        error = fail(flusher, "data.mdb");
        fall_back(flusher, /* is_data_in_doubt= */ true);
        return error;
    }
    if (slot_write(&flusher->slots, slot) != 0) {
        error = fail(flusher, "flushed.mdb");
        fall_back(flusher, /* is_data_in_doubt= */ false);
        return error;
    }
    flusher->last = *slot;
    return ERROR_NONE;
}

// Flushes what was committed until now. The caller holds the mutex of flushes.
static Error flush_once(KvFlusher *flusher)
{
    if (atomic_load(&flusher->has_failed)) return ERROR_IO;
    MDB_txn *pin = NULL;
    Slot slot = {.state = SLOT_FLUSHED, .is_set_back = atomic_load(&flusher->kv->is_set_back)};
    int64_t oldest_ns = atomic_load(&flusher->oldest_ns);
    Error error = pin_newest(flusher, &pin, &slot);
    if (error) {
        if (pin) mdb_txn_abort(pin);
        return error;
    }
    // This order is what it all rests on: pages, then who names them, then the pin before.
    error = flush_and_say(flusher, &slot);
    if (error) { // the state before stays pinned: it is the one on the disk
        atomic_store(&flusher->oldest_ns, oldest_ns);
        mdb_txn_abort(pin);
        return error;
    }
    atomic_store(&flusher->flushing_bytes, 0);
    if (flusher->pin) mdb_txn_abort(flusher->pin);
    flusher->pin = pin;
    atomic_store(&flusher->flushed_txn, slot.txn_id);
    return ERROR_NONE;
}

static Error flush_up_to(KvFlusher *flusher, uint64_t txn_id)
{
    Error error = ERROR_NONE;
    pthread_mutex_lock(&flusher->flush_mutex);
    // Whoever had the mutex may have flushed it for us.
    if (atomic_load(&flusher->flushed_txn) < txn_id) error = flush_once(flusher);
    pthread_mutex_unlock(&flusher->flush_mutex);
    return error;
}

Error kv_flush(Kv *kv)
{
    if (kv_is_of_parent(kv)) return ERROR_UNAVAILABLE;
    KvFlusher *flusher = kv->flusher;
    if (!flusher) return ERROR_NONE;
    return flush_up_to(flusher, atomic_load(&flusher->committed_txn));
}

bool kv_has_failed(const Kv *kv)
{
    return kv->flusher && atomic_load(&kv->flusher->has_failed);
}

bool kv_is_set_back(const Kv *kv)
{
    return atomic_load(&kv->is_set_back);
}

static void wake(KvFlusher *flusher)
{
    if (atomic_exchange(&flusher->waits_for, WAITS_FOR_NOTHING) == WAITS_FOR_NOTHING) return;
    pthread_mutex_lock(&flusher->mutex);
    pthread_cond_signal(&flusher->wakes);
    pthread_mutex_unlock(&flusher->mutex);
}

void flush_committed(KvFlusher *flusher, uint64_t txn_id, uint64_t bytes)
{
    if (atomic_load_explicit(&flusher->oldest_ns, memory_order_relaxed) == 0) {
        atomic_store(&flusher->oldest_ns, clock_monotonic_ns());
    }
    uint64_t unflushed = atomic_fetch_add(&flusher->unflushed_bytes, bytes) + bytes;
    uint64_t before = atomic_load(&flusher->committed_txn);
    while (before < txn_id &&
           !atomic_compare_exchange_weak(&flusher->committed_txn, &before, txn_id))
        continue;
    // The flusher says what it waits for, and then looks whether that is there already.
    int waits_for = atomic_load(&flusher->waits_for);
    if (waits_for == WAITS_FOR_A_COMMIT ||
        (waits_for == WAITS_FOR_MANY && unflushed >= UNFLUSHED_BYTES_BEGIN)) {
        wake(flusher);
    }
}

void flush_want(KvFlusher *flusher)
{
    atomic_store(&flusher->is_wanted, true);
}

static bool must_flush(KvFlusher *flusher)
{
    uint64_t bytes = atomic_load_explicit(&flusher->unflushed_bytes, memory_order_relaxed) +
                     atomic_load_explicit(&flusher->flushing_bytes, memory_order_relaxed);
    return bytes >= UNFLUSHED_BYTES_MAX ||
           atomic_load_explicit(&flusher->is_wanted, memory_order_relaxed);
}

bool kv_is_behind(const Kv *kv)
{
    return kv->flusher && must_flush(kv->flusher);
}

Error flush_admit(KvFlusher *flusher)
{
    if (atomic_load_explicit(&flusher->has_failed, memory_order_relaxed)) return ERROR_IO;
    if (__builtin_expect(!must_flush(flusher), true)) return ERROR_NONE;
    atomic_store(&flusher->is_wanted, false);
    return flush_up_to(flusher, atomic_load(&flusher->committed_txn));
}

void kv_flush_stats(Kv *kv, KvFlushStats *out)
{
    *out = (KvFlushStats){.is_relaxed = false};
    KvFlusher *flusher = kv->flusher;
    if (!flusher) return;
    uint64_t flushed = atomic_load(&flusher->flushed_txn);
    uint64_t committed = atomic_load(&flusher->committed_txn);
    int64_t oldest_ns = atomic_load(&flusher->oldest_ns);
    out->is_relaxed = true;
    out->commits = committed > flushed ? committed - flushed : 0;
    out->bytes = atomic_load(&flusher->unflushed_bytes) + atomic_load(&flusher->flushing_bytes);
    if (oldest_ns > 0 && out->commits > 0)
        out->oldest_ms = (clock_monotonic_ns() - oldest_ns) / 1000000;
}

static bool is_behind(KvFlusher *flusher)
{
    return atomic_load(&flusher->committed_txn) > atomic_load(&flusher->flushed_txn);
}

// Sleeps while there is nothing to flush, without a timer. The mutex is held.
static void wait_for_a_commit(KvFlusher *flusher)
{
    while (!flusher->is_stopping) {
        atomic_store(&flusher->waits_for, WAITS_FOR_A_COMMIT);
        if (is_behind(flusher) && !atomic_load(&flusher->has_failed)) return;
        pthread_cond_wait(&flusher->wakes, &flusher->mutex);
    }
}

// Lets more come, until the interval is over or there is much. The mutex is held.
static void wait_for_many(KvFlusher *flusher, int64_t begun_ns)
{
    int64_t oldest_ns = atomic_load(&flusher->oldest_ns);
    int64_t until_ns = (oldest_ns > begun_ns ? oldest_ns : begun_ns) + flusher->interval_ns;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    int failed = 0;
    while (!failed && !flusher->is_stopping) {
        atomic_store(&flusher->waits_for, WAITS_FOR_MANY);
        if (atomic_load(&flusher->unflushed_bytes) >= UNFLUSHED_BYTES_BEGIN) return;
        failed = pthread_cond_timedwait(&flusher->wakes, &flusher->mutex, &until);
    }
}

static void *flusher_main(void *context)
{
    KvFlusher *flusher = context;
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
