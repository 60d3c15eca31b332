// Lengths, UTF-8, JSON and times are checked by the field rules.

#include "rpc/call_check.h"

static Error check_model(Rpc *rpc, const char *field, const char *name, const ModelRef *model)
{
    if (!model || (*model->provider && *model->name)) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s.%s: provider and name are required", field,
                    name);
}

Error new_call_check(Rpc *rpc, const char *field, const NewCall *new_call)
{
    if (!new_call->requested && !new_call->resolved) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s.requested or %s.resolved is required",
                        field, field);
    }
    Error error = check_model(rpc, field, "requested", new_call->requested);
    if (!error) error = check_model(rpc, field, "resolved", new_call->resolved);
    if (error) return error;
    return rpc_external(rpc, field, "external", new_call->external);
}
