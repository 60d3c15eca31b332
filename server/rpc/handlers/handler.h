// Functions that handlers share.
//
// A write has two handlers. check_x runs on the thread that received the request and does not use
// the store: it checks, fills in defaults and leaves in rpc->prepared what handle_x needs. handle_x
// runs in the writer's transaction; it must do all checks before its first put. A read has only
// handle_x.

#pragma once

#include "base/limits.h"
#include "rpc/cursor.h"
#include "rpc/rpc.h"
#include "store/session.h"

// Returns the number of a reply's first field, which is its record or its page of records. Handlers
// append these to rpc->reply.
static inline uint32_t reply_record_field(const Rpc *rpc)
{
    return rpc->method->response->fields[0].id;
}

// What check leaves of a request that names a session and has nothing else to check.
typedef struct SessionCall {
    Ulid session;
} SessionCall;

// Reads session_id and puts it into rpc->prepared, from where session_of returns it. Returns
// ERROR_INVALID_ARGUMENT.
MUST_USE Error check_session(Rpc *rpc, const char *session_id);
Ulid session_of(const Rpc *rpc);

// Appends the session, without system_prompt and data, to the reply.
MUST_USE Error reply_session(Rpc *rpc, Ulid session);

// Reads the session ID of a read. Returns ERROR_INVALID_ARGUMENT, or ERROR_SESSION_NOT_FOUND if the
// session does not exist.
MUST_USE Error read_session(Rpc *rpc, const char *session_id, Ulid *out);
