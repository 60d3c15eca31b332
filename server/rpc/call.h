// A call: one request on its way down and its reply on its way up.
//
// Who submits a call sets `request`, `on_done` and `context`, and owns it; the engine fills the
// rest and runs on_done once, on a thread of its own choice, when `reply` is complete. All memory
// that serves the call is in its arena, which call_reset empties.

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

struct Call {
    Slice request; // the encoded Request; borrowed until on_done
    void (*on_done)(Call *call);
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
    Call *next; // in the writer's queue
};

void call_init(Call *call);
void call_reset(Call *call); // ready for the next request; keeps memory
void call_free(Call *call);

// Says what is wrong and returns `error`.
#define call_fail(call, error, ...) error_say(&(call)->detail, (error), __VA_ARGS__)

// Reads a required id. ERROR_INVALID_ARGUMENT, naming the field.
MUST_USE Error call_id(Call *call, const char *field, const char *text, Ulid *out);

// The same for one that may be empty: ULID_ZERO then.
MUST_USE Error call_optional_id(Call *call, const char *field, const char *text, Ulid *out);

// ERROR_INVALID_ARGUMENT if a required string is empty.
MUST_USE Error call_required(Call *call, const char *field, const char *text);

// ERROR_INVALID_ARGUMENT if `external` lacks its source or its id. NULL, one that was not given, is
// allowed. `field` is its name in the request, below the message `within` if that is not "".
MUST_USE Error call_external(Call *call, const char *within, const char *field,
                             const External *external);

// The bounds of a page that a request asks for. `limit_max` is what `limit` may be at most, the
// default where it is 0 is `limit_default`. ERROR_INVALID_ARGUMENT.
typedef struct Page {
    uint32_t limit;
    size_t bytes;
} Page;

MUST_USE Error call_page(Call *call, uint32_t limit, uint32_t limit_default, uint32_t limit_max,
                         uint32_t page_bytes, Page *out);
