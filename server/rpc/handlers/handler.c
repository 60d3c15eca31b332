// Functions that handlers share.

#include "rpc/handlers/handler.h"

Error check_session(Rpc *rpc, const char *session_id)
{
    SessionCall *prepared = arena_new(&rpc->arena, SessionCall);
    if (!prepared) return arena_error(&rpc->arena);
    rpc->prepared = prepared;
    return rpc_id(rpc, "session_id", session_id, &prepared->session);
}

Ulid session_of(const Rpc *rpc)
{
    return ((const SessionCall *)rpc->prepared)->session;
}

Error reply_session(Rpc *rpc, Ulid session)
{
    return session_append_to(rpc->txn, session, /* is_brief= */ true, reply_record_field(rpc),
                             &rpc->reply);
}

Error read_session(Rpc *rpc, const char *session_id, Ulid *out)
{
    Error error = rpc_id(rpc, "session_id", session_id, out);
    if (error) return error;
    SessionBrief brief;
    return session_brief(rpc->txn, *out, &brief);
}
