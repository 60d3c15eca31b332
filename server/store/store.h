// The store: one directory, opened by one process, and its transactions.
//
// A Txn carries what every function of the store needs: the storage transaction, the arena and the
// error detail of the call it serves, one clock reading, and for writes the state that the commit
// persists (last id, event sequences). One write transaction serves a whole batch of calls, one
// after the other (txn_serve).

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "kv/kv.h"
#include "os/clock.h"
#include "os/random.h"
#include "report/error_detail.h"
#include "store/tables.h"
#include "text/ulid.h"

typedef struct Store Store;

enum { STORE_FORMAT_VERSION = 2, INSTANCE_ID_BYTES = ULID_TEXT_BYTES };

typedef struct StoreOptions {
    const char *directory;        // created with mode 0700 if it is missing
    bool is_ephemeral;            // commits are not flushed: for stores that nobody keeps
    unsigned flush_ms;            // not 0: relaxed, commits are flushed after so long (kv/kv.h)
    bool is_read_only;            // the store must be there; write transactions are refused
    bool is_beside;               // read-only, beside the process that has the store: not locked
    size_t map_bytes;             // 0: sized from the disk
    uint32_t fork_depth_max;      // distinct ancestors that a fork's history may read; 0: no limit
    uint64_t event_count_max;     // 0: EVENT_COUNT_DEFAULT
    int64_t event_age_ms_max;     // 0: EVENT_AGE_MS_DEFAULT
    int64_t operation_age_ms_max; // 0: OPERATION_AGE_MS_DEFAULT
    Clock clock;                  // .now_ms NULL: the system's
    uint64_t random_seed;         // 0: from the kernel
    uint64_t format;              // that the file must have; 0: STORE_FORMAT_VERSION
    KvSeam seam;
    unsigned long file_system_type; // 0: asked of the kernel. Tests say another
    const char *boot_id;            // NULL: likewise
} StoreOptions;

// The three steps of opening a store. Everybody but migrations uses store_open (store/open.h).
//
// Takes the lock, opens the file and reads its format; 0: it is new. `*out_store` is the caller's
// to load, and to close. Errors as store_open's.
MUST_USE Error store_attach(const StoreOptions *options, ErrorDetail *detail, Store **out_store,
                            uint64_t *out_format);

// Closes the file, calls `replace`, and opens the file that is in its place then.
MUST_USE Error store_reopen(Store *store,
                            Error (*replace)(const StoreOptions *options, ErrorDetail *detail),
                            ErrorDetail *detail);

// Reads the instance and the state. `is_new`: writes them first.
MUST_USE Error store_load(Store *store, bool is_new, ErrorDetail *detail);

// No transaction may be open. NULL is allowed.
void store_close(Store *store);

// Returns when all that was committed before is on the disk: at once, but in a relaxed store.
// ERROR_IO: that is not known, and the store has closed itself. ERROR_UNAVAILABLE.
MUST_USE Error store_flush(Store *store);

const StoreOptions *store_options(const Store *store);
const char *store_instance_id(const Store *store); // borrowed until the store is closed
Kv *store_kv(Store *store);                        // borrowed until the store is closed

// What a commit persists besides the rows: written once per batch, in the same transaction.
typedef struct StoreState {
    Ulid last_id;
    uint64_t last_event_sequence;
    uint64_t first_event_sequence; // the oldest kept; last + 1 when none is
    // Not stored: when the event of this sequence was made, as it was read last. 0: none was.
    uint64_t dated_event_sequence;
    int64_t dated_event_at;
} StoreState;

typedef struct EventList EventList; // store/event.h

typedef struct Txn {
    Store *store;
    KvTxn *kv;
    bool is_write;
    Arena *arena;        // of the call being served; borrowed
    ErrorDetail *detail; // of the call being served; borrowed, may be NULL
    int64_t now_ms;      // one reading per call: times and the ids' time agree
    Slice operation_id;  // of the call being served, for its events
    StoreState state;    // of writes: as it will be committed. Reads ask txn_state
    bool state_is_dirty;
    bool notes_purge;  // a purge was begun
    EventList *events; // borrowed: its events are listed there in their order. NULL: nowhere
} Txn;

// ERROR_INVALID_ARGUMENT: a write transaction of a read-only store.
MUST_USE Error txn_begin(Store *store, bool is_write, Arena *arena, ErrorDetail *detail,
                         Txn *out_txn);

// Makes the transaction serve another call: its arena and detail, a new clock reading.
void txn_serve(Txn *txn, Arena *arena, ErrorDetail *detail, Slice operation_id);

// Whether anything was put or deleted since the transaction began.
bool txn_has_writes(const Txn *txn);

// Ends the transaction. When it fails nothing was stored: the next transaction may work unless
// store_is_failed says that the store has closed itself, and every later txn_begin is ERROR_CLOSED.
MUST_USE Error txn_commit(Txn *txn);

// Ends the transaction without a trace. Allowed after txn_commit, and on a zeroed Txn.
void txn_abort(Txn *txn);

// The state as this transaction sees it.
MUST_USE Error txn_state(Txn *txn, StoreState *out);

// Sets the file's format; only migrations change it.
MUST_USE Error txn_set_format(Txn *txn, uint64_t format);

// Gives the store a new instance id, which counts from its next opening on.
MUST_USE Error txn_renew_instance(Txn *txn);

// Whether a failed commit, or a failed flush of a relaxed store, has closed it for good.
bool store_is_failed(const Store *store);

// Issues the next id: the clock's millisecond and random bits, or the last id plus one within a
// millisecond and when the clock went back. Strictly increasing over everything ever committed.
Ulid txn_issue_id(Txn *txn);

// The text of an id in the transaction's arena; "" for ULID_ZERO. ERROR_OUT_OF_MEMORY: NULL then.
char *txn_id_text(Txn *txn, Ulid id);

// Shorthands over kv, with the table's number.
MUST_USE Error txn_put(Txn *txn, StoreTable table, const Key *key, Slice value);
MUST_USE Error txn_delete(Txn *txn, StoreTable table, const Key *key);
MUST_USE Error txn_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out);

// Decodes stored bytes into the arena. ERROR_CORRUPT when they are no such message.
MUST_USE Error txn_decode(Txn *txn, const ProtobufCMessageDescriptor *descriptor, Slice bytes,
                          void *out_message_pointer);

// Encodes into the arena, leaving `gap` unused bytes in front of what `out` names.
MUST_USE Error txn_encode(Arena *arena, const ProtobufCMessage *message, size_t gap, Slice *out);
