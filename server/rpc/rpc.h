// An Rpc: one request that the engine runs, and its reply. (A "Call" is a record of the contract:
// an upstream provider's answer and its cost.)
//
// The submitter owns the Rpc and sets `request`, `on_done` and `context`. The engine sets the rest
// and calls on_done once, on any thread, when `reply` is complete. All other memory of the Rpc is
// in its arena, which rpc_reset empties.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "dispatch_table.h"
#include "names.h"
#include "report/error_detail.h"
#include "rpc/loan.h"
#include "store/store.h"

typedef struct Engine Engine;
typedef struct MessageSink MessageSink; // store/history.h

struct Rpc {
    Slice request; // the encoded Request; borrowed until on_done
    void (*on_done)(Rpc *rpc);
    void *context;
    Slice token_wanted; // the token that the request must have; empty: any or none

    Buffer reply;     // the encoded Response, with what `loan` has between its bytes; owned
    Loan loan;        // what the reply borrows; the submitter must end it
    bool keeps_reply; // the reply's memory is kept for the next request, however large it is

    Engine *engine;
    const Method *method;
    Slice operation_id;  // borrows from `request`
    Slice body;          // likewise
    int64_t deadline_ns; // monotonic; INT64_MAX: none
    int64_t submitted_ns;
    bool wants_sync;   // it is answered when all it wrote or read is on the disk
    Hash request_hash; // of method and body; for writes with an operation_id

    ProtobufCMessage *message; // the decoded request, in the arena
    void *prepared;            // from `check` for `run`, in the arena
    bool stores_nothing;       // set by `check`: not even its operation_id is stored
    Txn *txn;                  // while `run` runs
    const MessageSink *sink;   // gets the entries of MessagesForSession; NULL: the reply does
    bool is_waiting_allowed;   // ListEvents may ask to run again when there are events …
    uint64_t wait_after;       // … after this sequence …
    uint32_t wait_ms;          // … within this time; 0: it does not ask
    int64_t wait_until_ns;     // monotonic; 0: it has not waited yet

    Error error;
    ErrorDetail detail;
    Arena arena;
    Rpc *next; // in the writer's queue
};

void rpc_init(Rpc *rpc);
void rpc_reset(Rpc *rpc); // makes it ready for the next request; keeps memory
void rpc_free(Rpc *rpc);

// Writes the detail and returns `error`.
#define rpc_fail(rpc, error, ...) error_say(&(rpc)->detail, (error), __VA_ARGS__)

// Reads a required ID. Returns ERROR_INVALID_ARGUMENT; the detail names the field.
MUST_USE Error rpc_id(Rpc *rpc, const char *field, const char *text, Ulid *out);

// The same for an ID that may be empty, which is read as ULID_ZERO.
MUST_USE Error rpc_optional_id(Rpc *rpc, const char *field, const char *text, Ulid *out);

// Returns ERROR_INVALID_ARGUMENT if a required string is empty.
MUST_USE Error rpc_required(Rpc *rpc, const char *field, const char *text);

// Returns ERROR_INVALID_ARGUMENT if `external` has no source or no ID. NULL is allowed: it was not
// given. `field` is its name in the request, in the message `within` if that is not "".
MUST_USE Error rpc_external(Rpc *rpc, const char *within, const char *field,
                            const External *external);

// The bounds of a page. rpc_page reads them from a request: `limit` may be at most `limit_max`, and
// 0 means `limit_default`. Returns ERROR_INVALID_ARGUMENT.
typedef struct Page {
    uint32_t limit;
    size_t bytes;
} Page;

MUST_USE Error rpc_page(Rpc *rpc, uint32_t limit, uint32_t limit_default, uint32_t limit_max,
                        uint32_t page_bytes, Page *out);
