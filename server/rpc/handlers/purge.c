// Handler of PurgeSession.

#include "store/purge.h"

#include "rpc/handlers/handler.h"

Error check_purge_session(Rpc *rpc, PurgeSessionRequest *request)
{
    return check_session(rpc, request->session_id);
}

// PurgeSession: removes a session at once, and its rows in the background.
Error handle_purge_session(Rpc *rpc, const PurgeSessionRequest *request,
                           PurgeSessionResponse *response)
{
    bool is_kept;
    Error error = purge_session(rpc->txn, session_of(rpc), request->keep_for_forks, &is_kept);
    response->session_id = request->session_id;
    response->kept_for_forks = !error && is_kept;
    return error;
}
