// The store: opens a data directory for one process and runs transactions on it.
//
// A Txn holds what every function of the store needs: the storage transaction, the arena and the
// error detail of the call that it serves, one clock reading, and for writes the state that the
// commit stores (last ID, event sequences, store time). One write transaction serves a batch of
// calls, one after the other (txn_serve).

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "kv/durable/data_file.h"
#include "kv/kv.h"
#include "os/clock.h"
#include "os/random.h"
#include "report/error_detail.h"
#include "store/meta.h"

typedef struct Store Store;

typedef struct StoreOptions {
    const char *directory;      // created with mode 0700 if it does not exist
    bool is_ephemeral;          // never flush commits; for stores that nobody keeps
    unsigned flush_ms;          // not 0: relaxed; the log is flushed after this time
    unsigned flush_data_ms;     // until data.mdb is flushed, too; 0: FLUSH_DATA_MS. For tests
    uint64_t log_segment_bytes; // of each segment of the log; 0: they grow. For tests
    bool is_read_only;          // the store must exist; write transactions are refused
    bool is_beside;             // read-only, next to the process that owns the store; takes no lock
    size_t map_bytes;           // 0: derived from the size of the disk
    uint32_t fork_depth_max;    // distinct ancestors that a fork's history may read; 0: no limit
    uint64_t event_count_max;   // 0: EVENT_COUNT_DEFAULT
    int64_t event_age_ms_max;   // 0: EVENT_AGE_MS_DEFAULT
    uint64_t operation_count_max; // 0: OPERATION_COUNT_DEFAULT
    int64_t operation_age_ms_max; // 0: OPERATION_AGE_MS_DEFAULT
    Clock clock;                  // .now_ms NULL: the system clock
    uint64_t random_seed;         // 0: seed from the kernel
    KvSeam seam;
    void (*migrating)(void); // called every few seconds of a migration; may be NULL
    const Ulid
        *left_out; // sessions that cannot be read, sorted; borrowed until the store is closed
    size_t left_out_count;
    unsigned long file_system_type; // 0: ask the kernel; tests set it
    const char *boot_id;            // NULL: ask the kernel; tests set it
    const PageWalkOptions *walk;    // as in DataFileOptions; borrowed until the open returns
    bool walks_behind;              // the caller calls store_walk if store_is_walk_due
} StoreOptions;

// The three steps of opening a store. All callers except migrations use store_open (store/open.h).
//
// Locks the directory, opens the file and reads its format into `*out_format`: 0 if the file is
// new. The caller owns `*out_store`: it must call store_load next, and store_close at the end.
// Errors: as store_open.
MUST_USE Error store_attach(const StoreOptions *options, ErrorDetail *detail, Store **out_store,
                            uint64_t *out_format);

// Closes the file, calls `replace`, then opens the file that is now in its place. After an error
// the caller can only close the store.
MUST_USE Error store_reopen(Store *store,
                            Error (*replace)(const StoreOptions *options, ErrorDetail *detail),
                            ErrorDetail *detail);

// Loads the instance ID and the state into `store`. If `is_new` is set, writes them first.
MUST_USE Error store_load(Store *store, bool is_new, ErrorDetail *detail);

// Closes the store and frees it. No transaction may be open. `store` may be NULL.
void store_close(Store *store);

// Waits until all earlier commits are on the disk. Errors as kv_flush; the store has then closed
// itself.
MUST_USE Error store_flush(Store *store, ErrorDetail *detail);

// Returns whether so much is not flushed that the next write may have to wait for the disk.
bool store_is_behind(const Store *store);

void store_flush_stats(const Store *store, KvFlushStats *out);

// Reads the statistics of the file, its readers and its tables. Errors as kv_begin and kv_get.
MUST_USE Error store_stats(Store *store, ErrorDetail *detail, KvStats *out);

// Reads which files the store has open.
void store_file_ids(const Store *store, DataFileIds *out);

// Returns whether the writer, another process, has a larger map. A read-only store must then be
// closed and opened again.
bool store_is_outgrown(const Store *store);

// Returns whether a power cut or a disk error took the store back, until store_forget_set_back.
// Call that after the commit that has dealt with it. Both are on the disk then, unless
// store_is_failed.
bool store_is_set_back(const Store *store);
void store_forget_set_back(Store *store);

// Gives the memory of the map back to the kernel. Others may read at the same time.
void store_trim(Store *store);

// Notes that the store is used as it is: see file_walk_note_use.
void store_note_use(Store *store);

// Returns whether all pages must be walked before the file is trusted: its owner wants to walk it
// (StoreOptions.walks_behind), the machine may have gone down since the last walk, and store_walk
// has not ended without a finding.
bool store_is_walk_due(const Store *store);

// Walks all pages of the file while others read and write: see file_walk_now.
MUST_USE Error store_walk(Store *store, const PageWalkOptions *options, ErrorDetail *detail,
                          PageWalkResult *out);

// Clears the reader slots of processes that have died.
void store_clear_dead_readers(Store *store);

// Checks whether the file was moved, removed or cut short (kv/durable/ownership.h). ERROR_IO: it
// was, and the store has closed itself.
MUST_USE Error store_check_owner(Store *store, ErrorDetail *detail);

const StoreOptions *store_options(const Store *store);

// Returns whether a session is one of StoreOptions.left_out. Calls on it are ERROR_CORRUPT.
bool store_leaves_out(const Store *store, Ulid session);
// Writes that to `detail` and returns ERROR_CORRUPT.
MUST_USE Error store_refuse_left_out(Ulid session, ErrorDetail *detail);
const char *store_instance_id(const Store *store); // borrowed until the store is closed

typedef struct EventList EventList; // store/event.h

typedef struct Txn {
    Store *store;
    KvTxn *kv;
    bool is_write;
    Arena *arena;        // borrowed from the call being served
    ErrorDetail *detail; // borrowed from the call being served; may be NULL
    int64_t now_ms;      // read once per call, so that stored times and the times in IDs agree
    Slice operation_id;  // of the call being served; copied into its events
    StoreState state;    // writes: the state to be committed; reads must call txn_state
    bool state_is_dirty;
    bool notes_purge;  // a purge was begun
    EventList *events; // borrowed; collects the events in order; NULL: they are not collected
} Txn;

// Begins a transaction. The caller must end it with txn_commit or txn_abort. Borrows `arena` and
// `detail`. ERROR_INVALID_ARGUMENT: a write transaction on a read-only store. ERROR_CLOSED: the
// store has closed itself (store_is_failed).
MUST_USE Error txn_begin(Store *store, bool is_write, Arena *arena, ErrorDetail *detail,
                         Txn *out_txn);

// Makes the transaction serve another call: sets its arena, detail and operation ID, and reads the
// clock.
void txn_serve(Txn *txn, Arena *arena, ErrorDetail *detail, Slice operation_id);

// Sets where the cause of a failure is written from now on.
void txn_set_detail(Txn *txn, ErrorDetail *detail);

// Returns whether the transaction has put or deleted any row.
bool txn_has_writes(const Txn *txn);

// Commits and ends the transaction. If it fails, nothing was stored. The next transaction may work,
// unless the failure has closed the store (store_is_failed): then every later txn_begin returns
// ERROR_CLOSED. ERROR_STORE_FULL never closes the store.
MUST_USE Error txn_commit(Txn *txn);

// Ends the transaction and discards its changes. Allowed after txn_commit and on a zeroed Txn.
void txn_abort(Txn *txn);

// Reads the state as this transaction sees it.
MUST_USE Error txn_state(Txn *txn, StoreState *out);

// Gives the store a new instance ID. It takes effect the next time the store is loaded.
MUST_USE Error txn_renew_instance(Txn *txn);

// Returns whether a failed commit, a failed flush of a relaxed store, or another process that
// writes to the file, has closed the store for good.
bool store_is_failed(const Store *store);

// Issues the next ID: the clock's millisecond and random bits. Within the same millisecond, and
// after the clock went back, it is the last ID plus one. Ids rise strictly over everything that was
// ever committed.
Ulid txn_issue_id(Txn *txn);

// Returns the text of an ID, or "" for ULID_ZERO, in the transaction's arena. NULL: out of memory
// (arena_error).
char *txn_id_text(Txn *txn, Ulid id);

// Shorthands for kv_put, kv_delete and kv_get that take a StoreTable.
MUST_USE Error txn_put(Txn *txn, StoreTable table, const Key *key, Slice value);
MUST_USE Error txn_delete(Txn *txn, StoreTable table, const Key *key);
MUST_USE Error txn_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out);

// Decodes stored bytes into the arena. ERROR_CORRUPT: they do not encode such a message.
MUST_USE Error txn_decode(Txn *txn, const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                          void *out_message_pointer);

// Encodes into the arena, with `gap` unused bytes before the bytes of `out`.
MUST_USE Error txn_encode(Arena *arena, const ProtobufCMessage *message, size_t gap, Slice *out);
