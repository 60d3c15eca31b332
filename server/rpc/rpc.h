// An Rpc: one request that the engine runs, and its reply. ("Call" is a record of the contract: an
// upstream provider's answer and its cost.)
//
// The submitter sets `request`, `on_done` and `context`, and owns the Rpc. The engine fills in the
// rest and calls on_done once, on any thread, when `reply` is complete. All memory that the Rpc
// needs is in its arena; rpc_reset empties it.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "dispatch_table.h"
#include "names.h"
#include "report/error_detail.h"
#include "store/store.h"

typedef struct Engine Engine;
typedef struct MessageSink MessageSink; // store/history.h

struct Rpc {
    Slice request; // the encoded Request; borrowed until on_done
    void (*on_done)(Rpc *rpc);
    void *context;
    Slice token_wanted; // what the request must carry as its token; empty: anything will do

    Buffer reply;     // the encoded Response; owned
    bool keeps_reply; // its memory is the client's, to be kept however large it has become

    Engine *engine;
    const Method *method;
    Slice operation_id;  // borrows from `request`
    Slice body;          // likewise
    int64_t deadline_ns; // monotonic; INT64_MAX: none
    int64_t submitted_ns;
    bool wants_sync;   // it is answered when it is on the disk
    Hash request_hash; // of method and body; for writes with an operation_id

    ProtobufCMessage *message; // the decoded request, in the arena
    void *prepared;            // what `check` left for `run`, in the arena
    bool stores_nothing;       // said by `check`: its operation_id is not remembered either
    Txn *txn;                  // while `run` runs
    const MessageSink *sink;   // of MessagesForSession's entries; NULL: the reply
    bool is_waiting_allowed;   // ListEvents may ask to be run again when there is news …
    uint64_t wait_after;       // … after this sequence: up to it nothing is for the call …
    uint32_t wait_ms;          // … for this long; 0: it does not ask
    int64_t wait_until_ns;     // monotonic; 0: it has not waited yet

    Error error;
    ErrorDetail detail;
    Arena arena;
    Rpc *next; // in the writer's queue
};

void rpc_init(Rpc *rpc);
void rpc_reset(Rpc *rpc); // ready for the next request; keeps memory
void rpc_free(Rpc *rpc);

// Says what is wrong and returns `error`.
#define rpc_fail(rpc, error, ...) error_say(&(rpc)->detail, (error), __VA_ARGS__)

// Reads a required id. ERROR_INVALID_ARGUMENT, naming the field.
MUST_USE Error rpc_id(Rpc *rpc, const char *field, const char *text, Ulid *out);

// The same for one that may be empty: ULID_ZERO then.
MUST_USE Error rpc_optional_id(Rpc *rpc, const char *field, const char *text, Ulid *out);

// ERROR_INVALID_ARGUMENT if a required string is empty.
MUST_USE Error rpc_required(Rpc *rpc, const char *field, const char *text);

// ERROR_INVALID_ARGUMENT if `external` lacks its source or its id. NULL, one that was not given, is
// allowed. `field` is its name in the request, below the message `within` if that is not "".
MUST_USE Error rpc_external(Rpc *rpc, const char *within, const char *field,
                            const External *external);

// The bounds of a page that a request asks for. `limit_max` is what `limit` may be at most, the
// default where it is 0 is `limit_default`. ERROR_INVALID_ARGUMENT.
typedef struct Page {
    uint32_t limit;
    size_t bytes;
} Page;

MUST_USE Error rpc_page(Rpc *rpc, uint32_t limit, uint32_t limit_default, uint32_t limit_max,
                        uint32_t page_bytes, Page *out);
