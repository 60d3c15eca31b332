// Meta: the rows of the table `meta`, which describe the store.

#pragma once

#include "kv/kv.h"
#include "store/tables.h"

enum { INSTANCE_ID_BYTES = ULID_TEXT_BYTES };

// What a commit stores besides rows. It is written once per batch, in the same transaction.
typedef struct StoreState {
    Ulid last_id;
    uint64_t last_event_sequence;
    uint64_t first_event_sequence; // the oldest kept; last + 1 if none is kept
    // Not stored: the time of the event with this sequence, as read last. 0: none was read.
    uint64_t dated_event_sequence;
    int64_t dated_event_at;
} StoreState;

// The row that says which format the file has, as kv_open wants it. Borrows `bytes`.
enum { META_FORMAT_BYTES = 8 };
KvMark meta_mark(uint64_t format, uint8_t bytes[META_FORMAT_BYTES]);

// Each of these reads one row. ERROR_CORRUPT: it has the wrong size, or the instance ID is missing;
// `detail` says which. Other errors as kv_get. `*out_version` is 0 if the file is new.
MUST_USE Error meta_read_format(KvTxn *txn, ErrorDetail *detail, uint64_t *out_version);
MUST_USE Error meta_read_instance(KvTxn *txn, ErrorDetail *detail, char out[INSTANCE_ID_BYTES]);
MUST_USE Error meta_read_state(KvTxn *txn, ErrorDetail *detail, bool *out_found, StoreState *out);

// Each of these puts one row. Errors as kv_put.
MUST_USE Error meta_put_format(KvTxn *txn, uint64_t version);
MUST_USE Error meta_put_instance(KvTxn *txn, const char id[INSTANCE_ID_BYTES]);
MUST_USE Error meta_put_state(KvTxn *txn, const StoreState *state);
