// Calls: the ledger of requests to models' providers, by session in id order.
//
// The head of the session keeps how many there are and the one recorded last. A call's external id
// is unique per source over the store: a row of session_index leads to it.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct CallRecordPut {
    Ulid session;
    const NewCall *call; // checked
    bool propagate_usage;
} CallRecordPut;

// The store's half of a call that is about to be recorded: whether its external id is free.
// ERROR_EXTERNAL_TAKEN, naming the holder.
MUST_USE Error call_external_check(Txn *txn, const NewCall *call);

// Whether the call that a replay brings may be recorded already: its external id is taken, or, if
// it has none, its request id is that of one of the session's newest calls. One with neither may
// always be.
MUST_USE Error call_record_is_known(Txn *txn, Ulid session, const NewCall *call, bool *out);

// Records a call under an issued id that is newer than all before, with its event, and fills the
// receipt, whose strings are in the transaction's arena. Works on deleted and archived sessions.
// `call_external_check` came before. ERROR_SESSION_NOT_FOUND.
MUST_USE Error call_record_put(Txn *txn, const CallRecordPut *put, Ulid id,
                               CallReceipt *out_receipt);

// Deletes a call for good. ERROR_SESSION_NOT_FOUND, ERROR_CALL_NOT_FOUND.
MUST_USE Error call_record_delete(Txn *txn, Ulid session, Ulid call, CallReceipt *out_receipt);

// Takes the row of session_index that leads to a call away, before the call goes.
MUST_USE Error call_external_drop(Txn *txn, Ulid session, Ulid call);

// The newest call of a session; `*out` NULL if it has none.
MUST_USE Error call_record_newest(Txn *txn, Ulid session, CallRecord **out);

// What a head says of its last call.
MUST_USE Error call_record_last(Txn *txn, const CallRecord *call, LastCall **out);

typedef struct CallQuery {
    Ulid session;
    int64_t since, until; // created_at, until exclusive; 0: any
    bool is_newest_first;
    Ulid after; // where the page before ended; zero: it is the first
    uint32_t limit;
    size_t page_bytes;
} CallQuery;

// Appends calls in the order of their ids. `out_last` is where to go on, zero at the end.
MUST_USE Error call_record_append_page(Txn *txn, const CallQuery *query, uint32_t field,
                                       Buffer *out, Ulid *out_last);
