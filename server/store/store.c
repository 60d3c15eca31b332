// The store: opens its file and runs its transactions.
//
// Ids and event sequences must never go back. Therefore the write transaction counts them in its
// own copy of StoreState, the commit stores that copy, and the store takes it over in memory only
// after the commit has succeeded. An aborted batch leaves no trace, and its IDs are issued again.

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/file_walk.h"
#include "kv/durable/flush.h"
#include "kv/durable/flush_note.h"
#include "kv/durable/ownership.h"
#include "kv/durable/reader_slots.h"
#include "kv/durable/recovery.h"
#include "kv/durable/trim.h"
#include "os/directory.h"
#include "report/log.h"
#include "store/files.h"
#include "store/manifest.h"
#include "wire/encode.h"

struct Store {
    StoreOptions options;
    char *directory; // owned
    Kv *kv;          // owned
    DataFile *file;  // of `kv`
    StoreLock lock;  // held while the store is open
    Hash boot;       // of the kernel's boot ID; zero: not known
    char instance_id[INSTANCE_ID_BYTES + 1];
    Random random;       // used by the thread of the write transaction only
    StoreState state;    // as committed; used by the thread of the write transaction only
    ErrorDetail failure; // of the commit that failed: set before is_failed, and never again
    atomic_bool is_failed;
};

enum { ENCODE_SMALL_BYTES = 2048 };

Error txn_renew_instance(Txn *txn)
{
    char instance_id[ULID_TEXT_BYTES + 1];
    ulid_format(txn_issue_id(txn), instance_id);
    return meta_put_instance(txn->kv, instance_id);
}

static Error store_initialise(Txn *txn)
{
    txn->state = (StoreState){
        .first_event_sequence = 1,
        .first_operation = 1,
        .time = store_time_begin(&txn->store->options.clock, txn->store->boot),
    };
    Error error = meta_put_format(txn->kv);
    return error ? error : txn_renew_instance(txn);
}

static Error store_read_state(Store *store, ErrorDetail *detail)
{
    Txn txn;
    Error error = txn_begin(store, /* is_write= */ false, NULL, detail, &txn);
    if (error) return error;
    error = txn_state(&txn, &store->state);
    if (!error) error = meta_read_instance(txn.kv, detail, store->instance_id);
    txn_abort(&txn);
    if (!error) store_time_resume(&store->state.time, &store->options.clock, store->boot);
    return error;
}

static Error open_kv(Store *store, ErrorDetail *detail)
{
    KvOptions kv_options = {
        .file = {.directory = store->directory,
                 .map_bytes = store->options.map_bytes,
                 .file_system_type = store->options.file_system_type,
                 .no_sync = store->options.is_ephemeral,
                 .read_only = store->options.is_read_only,
                 .flush_ms = store->options.is_ephemeral ? 0 : store->options.flush_ms,
                 .flush_data_ms = store->options.flush_data_ms,
                 .log_segment_bytes = store->options.log_segment_bytes,
                 .is_beside = store->options.is_beside,
                 .owns_directory = !store->options.is_beside,
                 .boot_id = store->options.boot_id,
                 .walk = store->options.walk},
        .tables = STORE_TABLE_OPTIONS,
        .table_count = TABLE_COUNT,
        .sign = meta_sign(),
        .seam = store->options.seam,
    };
    Error error = kv_open(&kv_options, detail, &store->kv);
    if (!error) store->file = kv_file(store->kv);
    return error;
}

static void options_fill(StoreOptions *options)
{
    if (!options->clock.now_ms) options->clock = clock_system();
    if (options->event_count_max == 0) options->event_count_max = EVENT_COUNT_DEFAULT;
    if (options->event_age_ms_max == 0) options->event_age_ms_max = EVENT_AGE_MS_DEFAULT;
    if (options->operation_count_max == 0) options->operation_count_max = OPERATION_COUNT_DEFAULT;
    if (options->operation_age_ms_max == 0) {
        options->operation_age_ms_max = OPERATION_AGE_MS_DEFAULT;
    }
}

static Hash boot_hash(const char *said)
{
    char boot_id[BOOT_ID_BYTES];
    flush_note_boot_id(said, boot_id);
    return *boot_id ? hash_bytes(slice_of(boot_id)) : HASH_ZERO;
}

// Creates the directory if it does not exist. Flushes its name to the disk before any commit in it
// is acknowledged.
static Error store_make_directory(Store *store, ErrorDetail *detail)
{
    if (mkdir(store->directory, 0700) == 0) {
        return store->options.is_ephemeral ? ERROR_NONE
                                           : directory_flush_above(store->directory, detail);
    }
    if (errno == EEXIST) return ERROR_NONE;
    return error_say_errno(detail, errno, "cannot create %s", store->directory);
}

// Opens the file and sets `*out_format`, 0 if the file is new.
static Error store_open_file(Store *store, uint64_t *out_format, ErrorDetail *detail)
{
    Txn txn;
    Error error = open_kv(store, detail);
    if (!error) error = txn_begin(store, /* is_write= */ false, NULL, detail, &txn);
    if (error) return error;
    error = meta_read_format(txn.kv, detail, out_format);
    txn_abort(&txn);
    return error;
}

static Error store_open_directory(Store *store, ErrorDetail *detail)
{
    bool is_read_only = store->options.is_read_only;
    if (!is_read_only) {
        Error error = store_make_directory(store, detail);
        if (error) return error;
    }
    if (is_read_only && access(store_path(store->directory, KV_FILE_DATA).text, R_OK) != 0) {
        return error_say_errno(detail, errno, "there is no store in %s", store->directory);
    }
    if (store->options.is_beside) return ERROR_NONE;
    Error error = store_files_lock(store->directory, "stop it or take another directory", detail,
                                   &store->lock);
    // A backup that is opened for writing is a store like any other from now on.
    return error || is_read_only ? error : manifest_remove(store->directory, detail);
}

Error store_attach(const StoreOptions *options, ErrorDetail *detail, Store **out_store,
                   uint64_t *out_format)
{
    if (!options->directory || !*options->directory ||
        strlen(options->directory) >= PATH_BYTES_MAX) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "the data directory must be a path of 1 to %d bytes", PATH_BYTES_MAX - 1);
    }
    Store *store = calloc(1, sizeof(Store));
    if (!store) return ERROR_OUT_OF_MEMORY;
    store->lock = STORE_LOCK_NONE;
    store->options = *options;
    options_fill(&store->options);
    store->directory = strdup(options->directory);
    if (!store->directory) {
        store_close(store);
        return ERROR_OUT_OF_MEMORY;
    }
    store->options.directory = store->directory;
    store->boot = boot_hash(options->boot_id);
    if (options->random_seed) {
        random_seed(&store->random, options->random_seed);
    } else {
        random_seed_system(&store->random);
    }
    Error error = store_open_directory(store, detail);
    if (!error) error = store_open_file(store, out_format, detail);
    if (error) {
        store_close(store);
        return error;
    }
    *out_store = store;
    return ERROR_NONE;
}

Error store_load(Store *store, bool is_new, ErrorDetail *detail)
{
    Txn txn;
    Error error = ERROR_NONE;
    if (is_new && store->options.is_read_only) {
        return error_say(detail, ERROR_CORRUPT, "%s contains no store: meta.format is missing",
                         store->directory);
    }
    if (is_new) {
        error = txn_begin(store, /* is_write= */ true, NULL, detail, &txn);
        if (error) return error;
        error = store_initialise(&txn);
        if (!error) error = txn_commit(&txn);
        txn_abort(&txn);
        // So far only an empty file has been flushed, and an empty file has no page that identifies
        // it. A power cut would set any other file that is put in its place back to empty. Flushing
        // now prevents that.
        if (!error) error = flush_commits(store->file, detail);
        if (error) return error;
    }
    return store_read_state(store, detail);
}

Error store_reopen(Store *store, Error (*replace)(const StoreOptions *options, ErrorDetail *detail),
                   ErrorDetail *detail)
{
    kv_close(store->kv);
    store->kv = NULL;
    Error error = replace(&store->options, detail);
    return error ? error : open_kv(store, detail);
}

void store_close(Store *store)
{
    if (!store) return;
    kv_close(store->kv);
    store_files_unlock(&store->lock);
    free(store->directory);
    free(store);
}

const StoreOptions *store_options(const Store *store)
{
    return &store->options;
}

static int compare_ids(const void *a, const void *b)
{
    return ulid_compare(*(const Ulid *)a, *(const Ulid *)b);
}

bool store_leaves_out(const Store *store, Ulid session)
{
    const StoreOptions *options = &store->options;
    return options->left_out_count > 0 &&
           bsearch(&session, options->left_out, options->left_out_count, sizeof(Ulid),
                   compare_ids) != NULL;
}

Error store_refuse_left_out(Ulid session, ErrorDetail *detail)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(session, text);
    return error_say(detail, ERROR_CORRUPT, "session %s cannot be read and was left out", text);
}

const char *store_instance_id(const Store *store)
{
    return store->instance_id;
}

Error store_flush(Store *store, ErrorDetail *detail)
{
    return kv_flush(store->kv, detail);
}

bool store_is_behind(const Store *store)
{
    return flush_is_behind(store->file);
}

void store_flush_stats(const Store *store, KvFlushStats *out)
{
    kv_flush_stats(store->kv, out);
}

Error store_stats(Store *store, ErrorDetail *detail, KvStats *out)
{
    return kv_stats(store->kv, detail, out);
}

void store_file_ids(const Store *store, DataFileIds *out)
{
    data_file_ids(store->file, out);
}

bool store_is_outgrown(const Store *store)
{
    return data_file_is_outgrown(store->file);
}

void store_trim(Store *store)
{
    trim_map(store->file);
}

void store_note_use(Store *store)
{
    file_walk_note_use(store->file);
}

bool store_is_walk_due(const Store *store)
{
    return store->options.walks_behind && file_walk_is_due(store->file);
}

Error store_walk(Store *store, const PageWalkOptions *options, ErrorDetail *detail,
                 PageWalkResult *out)
{
    return file_walk_now(store->file, options, detail, out);
}

void store_clear_dead_readers(Store *store)
{
    (void)reader_slots_clear_dead(store->file);
}

Error store_check_owner(Store *store, ErrorDetail *detail)
{
    return ownership_check_name(store->file, detail);
}

bool store_is_set_back(const Store *store)
{
    return recovery_is_set_back(store->file);
}

void store_forget_set_back(Store *store)
{
    recovery_forget_set_back(store->file, store->directory);
}

static Error refuse_closed(const Store *store, ErrorDetail *detail)
{
    ErrorDetail cause = store->failure;
    if (ownership_is_lost(store->file)) {
        ownership_tell_loss(store->file, &cause);
    } else if (!atomic_load(&store->is_failed)) {
        kv_tell_failure(store->kv, &cause);
    }
    return error_say(detail, ERROR_CLOSED, "the store closed itself and must be reopened: %s",
                     cause.text);
}

Error txn_begin(Store *store, bool is_write, Arena *arena, ErrorDetail *detail, Txn *out_txn)
{
    *out_txn = (Txn){.store = store, .is_write = is_write};
    txn_serve(out_txn, arena, detail, (Slice){NULL, 0});
    if (store_is_failed(store)) return refuse_closed(store, detail);
    if (is_write && store->options.is_read_only) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "the store is open for reading only");
    }
    if (is_write) {
        out_txn->state = store->state;
        store_time_advance(&out_txn->state.time, &store->options.clock);
    }
    return kv_begin(store->kv, is_write, detail, &out_txn->kv);
}

Error txn_state(Txn *txn, StoreState *out)
{
    if (txn->is_write) {
        *out = txn->state;
        return ERROR_NONE;
    }
    bool found;
    Error error = meta_read_state(txn->kv, txn->detail, &found, out);
    if (error || found) return error;
    return error_say(txn->detail, ERROR_CORRUPT, "meta.state is missing");
}

bool store_is_failed(const Store *store)
{
    return atomic_load(&store->is_failed) || kv_has_failed(store->kv) ||
           ownership_is_lost(store->file);
}

void txn_serve(Txn *txn, Arena *arena, ErrorDetail *detail, Slice operation_id)
{
    txn->arena = arena;
    txn_set_detail(txn, detail);
    txn->operation_id = operation_id;
    txn->now_ms = clock_now_ms(&txn->store->options.clock);
}

void txn_set_detail(Txn *txn, ErrorDetail *detail)
{
    txn->detail = detail;
    if (txn->kv) kv_set_detail(txn->kv, detail);
}

bool txn_has_writes(const Txn *txn)
{
    return kv_write_count(txn->kv) > 0;
}

Error txn_commit(Txn *txn)
{
    assert(txn->is_write);
    Store *store = txn->store;
    Error error = ERROR_NONE;
    if (txn->state_is_dirty) {
        error = meta_put_state(txn->kv, &txn->state);
        if (error) {
            kv_abort(&txn->kv);
            return error;
        }
    }
    error = kv_commit(&txn->kv);
    if (!error) {
        store->state = txn->state;
    } else if (error != ERROR_STORE_FULL) {
        if (txn->detail) store->failure = *txn->detail;
        atomic_store(&store->is_failed, true);
    }
    return error;
}

void txn_abort(Txn *txn)
{
    if (txn->kv) kv_abort(&txn->kv);
}

Ulid txn_issue_id(Txn *txn)
{
    assert(txn->is_write);
    Ulid last = txn->state.last_id;
    Ulid next;
    if (txn->now_ms > ulid_time_ms(last)) {
        uint8_t low_bytes[10];
        random_fill(&txn->store->random, low_bytes, sizeof(low_bytes));
        next = ulid_make(txn->now_ms, low_bytes);
    } else {
        next = ulid_next(last);
    }
    txn->state.last_id = next;
    txn->state_is_dirty = true;
    return next;
}

char *txn_id_text(Txn *txn, Ulid id)
{
    char *text = arena_alloc(txn->arena, ULID_TEXT_BYTES + 1);
    if (!text) return NULL;
    if (ulid_is_zero(id)) {
        *text = '\0';
    } else {
        ulid_format(id, text);
    }
    return text;
}

Error txn_put(Txn *txn, StoreTable table, const Key *key, Slice value)
{
    return kv_put(txn->kv, (KvTable)table, key_slice(key), value);
}

Error txn_delete(Txn *txn, StoreTable table, const Key *key)
{
    bool found;
    return kv_delete(txn->kv, (KvTable)table, key_slice(key), &found);
}

Error txn_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out)
{
    return kv_get(txn->kv, (KvTable)table, key_slice(key), out_found, out);
}

Error txn_decode(Txn *txn, const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                 void *out_message_pointer)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, &txn->arena->allocator, bytes.size, bytes.bytes);
    if (!message) {
        if (txn->arena->is_exhausted) return arena_error(txn->arena);
        return error_say(txn->detail, ERROR_CORRUPT, "a stored %s cannot be decoded",
                         descriptor->short_name);
    }
    *(ProtobufCMessage **)out_message_pointer = message;
    return ERROR_NONE;
}

// Most messages are small. For these, encoding right away is faster than measuring first.
Error txn_encode(Arena *arena, const ProtobufCMessage *message, size_t gap, Slice *out)
{
    uint8_t small[ENCODE_SMALL_BYTES], *end = small + sizeof(small);
    const uint8_t *begin = encode_before(small, end, message);
    size_t size = begin ? (size_t)(end - begin) : protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, gap + size);
    if (!bytes) return arena_error(arena);
    if (begin) {
        memcpy(bytes + gap, begin, size);
    } else {
        encode_before(bytes + gap, bytes + gap + size, message);
    }
    *out = (Slice){bytes + gap, size};
    return ERROR_NONE;
}
