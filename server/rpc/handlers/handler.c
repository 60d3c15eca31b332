// What handlers share.

#include "rpc/handlers/handler.h"

Error check_session(Call *call, const char *session_id)
{
    SessionCall *prepared = arena_new(&call->arena, SessionCall);
    if (!prepared) return arena_error(&call->arena);
    call->prepared = prepared;
    return call_id(call, "session_id", session_id, &prepared->session);
}

Ulid session_of(const Call *call)
{
    return ((const SessionCall *)call->prepared)->session;
}

Error reply_session(Call *call, Ulid session)
{
    return session_append_to(call->txn, session, /* is_brief= */ true, REPLY_RECORD, &call->reply);
}

Error read_session(Call *call, const char *session_id, Ulid *out)
{
    Error error = call_id(call, "session_id", session_id, out);
    if (error) return error;
    SessionBrief brief;
    return session_brief(call->txn, *out, &brief);
}
