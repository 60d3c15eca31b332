// Handlers of totals.

#include "store/totals.h"

#include "rpc/handlers/handler.h"

static Error check_delta(Rpc *rpc, const char *session_id, const Totals *delta)
{
    if (!delta) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "delta is required");
    return check_session(rpc, session_id);
}

Error check_update_session_totals(Rpc *rpc, UpdateSessionTotalsRequest *request)
{
    return check_delta(rpc, request->session_id, request->delta);
}

// UpdateSessionTotals: adds a delta to one session.
Error handle_update_session_totals(Rpc *rpc, const UpdateSessionTotalsRequest *request,
                                   UpdateSessionTotalsResponse *response)
{
    (void)response;
    Ulid session = session_of(rpc);
    Error error = totals_update(rpc->txn, session, request->delta);
    return error ? error : reply_session(rpc, session);
}

Error check_propagate_totals(Rpc *rpc, PropagateTotalsRequest *request)
{
    return check_delta(rpc, request->session_id, request->delta);
}

// PropagateTotals: adds a delta to a session and all its ancestors.
Error handle_propagate_totals(Rpc *rpc, const PropagateTotalsRequest *request,
                              PropagateTotalsResponse *response)
{
    return totals_propagate_call(rpc->txn, session_of(rpc), request->delta, &response->totals,
                                 &response->n_totals);
}
