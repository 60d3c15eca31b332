// Call records: the ledger of requests to model providers, one per session, in the order of IDs.
//
// The head record of a session keeps the number of its calls and the call that was recorded last.
// The external ID of a call is unique per source in the whole store. A row of session_index leads
// from it to the call.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct CallRecordPut {
    Ulid session;
    const NewCall *call; // the caller has checked it
    bool propagate_usage;
} CallRecordPut;

// Checks that the external ID of a call is free. ERROR_EXTERNAL_TAKEN: `detail` names the holder.
MUST_USE Error call_external_check(Txn *txn, const NewCall *call);

// Decides whether the call of a replay may already be recorded: its external ID is taken or, if it
// has none, one of the session's REPLAY_CALL_COUNT_MAX newest calls has its request ID. A call with
// neither ID always counts as known.
MUST_USE Error call_record_is_known(Txn *txn, Ulid session, const NewCall *call, bool *out);

// Records a call under `id` with its event, and fills the receipt, whose strings are in the
// transaction's arena. `id` must be issued and newer than the IDs of all calls. The caller must
// have called call_external_check. Deleted and archived sessions accept calls.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error call_record_put(Txn *txn, const CallRecordPut *put, Ulid id,
                               CallReceipt *out_receipt);

// Deletes a call for good. ERROR_SESSION_NOT_FOUND, ERROR_CALL_NOT_FOUND.
MUST_USE Error call_record_delete(Txn *txn, Ulid session, Ulid call, CallReceipt *out_receipt);

// Deletes the row of session_index that leads to a call. To be used before the call is deleted.
MUST_USE Error call_external_drop(Txn *txn, Ulid session, Ulid call);

// Reads the newest call of a session. `*out` is NULL if it has none.
MUST_USE Error call_record_newest(Txn *txn, Ulid session, CallRecord **out);

// Makes the summary of a call that a head record keeps as last_call. It is in the transaction's
// arena and borrows from `call`.
MUST_USE Error call_record_last(Txn *txn, const CallRecord *call, LastCall **out);

typedef struct CallQuery {
    Ulid session;
    int64_t since, until; // bounds of created_at, `until` exclusive; 0: none
    bool is_newest_first;
    Ulid after; // last call of the previous page; zero: first page
    uint32_t limit;
    size_t page_bytes;
} CallQuery;

// Appends calls in the order of their IDs, each as the content of the bytes field `field`. The next
// page continues after `*out_last`, which is zero after the last page.
MUST_USE Error call_record_append_page(Txn *txn, const CallQuery *query, uint32_t field,
                                       Buffer *out, Ulid *out_last);
