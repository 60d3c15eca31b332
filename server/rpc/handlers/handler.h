// What handlers share.
//
// A write has two halves. check_x runs on the thread that received the request and needs no store:
// it checks, fills in defaults and leaves in call->prepared what handle_x will need. handle_x runs
// in the writer's transaction: it checks first what needs the store, and puts last.
// A read has handle_x alone.

#pragma once

#include "base/limits.h"
#include "rpc/cursor.h"
#include "rpc/rpc.h"
#include "store/session.h"

// The number of a reply's first field, which holds its record or its page of records: handlers
// append these to rpc->reply.
static inline uint32_t reply_record_field(const Rpc *rpc)
{
    return rpc->method->response->fields[0].id;
}

// Shorthands for requests that name one session and nothing else to check.
typedef struct SessionCall {
    Ulid session;
} SessionCall;

// Reads session_id and keeps it in call->prepared for session_of.
MUST_USE Error check_session(Rpc *rpc, const char *session_id);
Ulid session_of(const Rpc *rpc);

// Appends the session, without system_prompt and data, as the reply's record.
MUST_USE Error reply_session(Rpc *rpc, Ulid session);

// Reads a session id and requires the session to exist; for reads.
MUST_USE Error read_session(Rpc *rpc, const char *session_id, Ulid *out);
