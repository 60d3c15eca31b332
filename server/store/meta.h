// Meta: the rows of the table `meta`, which describe the store.

#pragma once

#include "kv/kv.h"
#include "store/store_time.h"
#include "store/tables.h"

enum { INSTANCE_ID_BYTES = ULID_TEXT_BYTES };

// What a commit stores besides rows. It is written once per batch, in the same transaction.
typedef struct StoreState {
    Ulid last_id;
    uint64_t last_event_sequence;
    uint64_t first_event_sequence; // the oldest kept; last + 1 if none is kept
    uint64_t last_operation;       // number
    uint64_t first_operation;      // the oldest kept; last + 1 if none is kept
    StoreTime time;
    // Not stored: the store time of the event with this sequence and of the operation with this
    // number, as read last. 0: none was read.
    uint64_t dated_event_sequence;
    int64_t dated_event_at;
    uint64_t dated_operation;
    int64_t dated_operation_at;
} StoreState;

enum { STORE_FORMAT_VERSION = 3 };

// Returns the sign of this format, as kv_open wants it. It is where formats 1 and 2 have their
// format, so older programs refuse the file.
KvSign meta_sign(void);

// Reads the format from the row of `meta`, or, in a file of an older format, from the sign. 0: the
// file is empty. ERROR_CORRUPT: the format is missing in a file that is not empty, is 0 or has the
// wrong size, or the file does not look like one of its format; `detail` says which.
MUST_USE Error meta_read_format(KvTxn *txn, ErrorDetail *detail, uint64_t *out_version);

// Each of these reads one row. ERROR_CORRUPT: it has the wrong size, or the instance ID is missing;
// `detail` says which. Other errors as kv_get.
MUST_USE Error meta_read_instance(KvTxn *txn, ErrorDetail *detail, char out[INSTANCE_ID_BYTES]);
MUST_USE Error meta_read_state(KvTxn *txn, ErrorDetail *detail, bool *out_found, StoreState *out);

// Decodes the row `state` of formats 1 and 2, which had no operation numbers and no store time.
// ERROR_CORRUPT: it has the wrong size.
MUST_USE Error meta_decode_state_2(Slice value, ErrorDetail *detail, StoreState *out);

// Puts the format of this program, in both places. For a new file. Errors as kv_put.
MUST_USE Error meta_put_format(KvTxn *txn);

// Each of these puts one row. Errors as kv_put.
MUST_USE Error meta_put_instance(KvTxn *txn, const char id[INSTANCE_ID_BYTES]);
MUST_USE Error meta_put_state(KvTxn *txn, const StoreState *state);
