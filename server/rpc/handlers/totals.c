// Handlers: totals.

#include "store/totals.h"

#include "rpc/handlers/handler.h"

static Error check_delta(Call *call, const char *session_id, const Totals *delta)
{
    if (!delta) return call_fail(call, ERROR_INVALID_ARGUMENT, "delta is required");
    return check_session(call, session_id);
}

Error check_update_session_totals(Call *call, UpdateSessionTotalsRequest *request)
{
    return check_delta(call, request->session_id, request->delta);
}

// UpdateSessionTotals: adds a delta to one session.
Error handle_update_session_totals(Call *call, const UpdateSessionTotalsRequest *request,
                                   UpdateSessionTotalsResponse *response)
{
    (void)response;
    Ulid session = session_of(call);
    Error error = totals_update(call->txn, session, request->delta);
    return error ? error : reply_session(call, session);
}

Error check_propagate_totals(Call *call, PropagateTotalsRequest *request)
{
    return check_delta(call, request->session_id, request->delta);
}

// PropagateTotals: adds a delta to a session and all its ancestors.
Error handle_propagate_totals(Call *call, const PropagateTotalsRequest *request,
                              PropagateTotalsResponse *response)
{
    return totals_propagate_call(call->txn, session_of(call), request->delta, &response->totals,
                                 &response->n_totals);
}
