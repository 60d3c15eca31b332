// Reads without an engine.

#include "rpc/reader.h"

#include "os/clock.h"
#include "rpc/dispatch.h"

static bool is_for_server(const Method *method)
{
    switch (method - METHODS) {
    case METHOD_HEALTH:
    case METHOD_DESCRIBE:
    case METHOD_STATS: return true;
    default: return method->is_write || method->is_stream;
    }
}

static Error run(Store *store, Call *call)
{
    bool has_deadline = call->deadline_ns != INT64_MAX;
    if (has_deadline && clock_monotonic_ns() > call->deadline_ns) return ERROR_DEADLINE_EXCEEDED;
    Txn txn;
    Error error = txn_begin(store, /* is_write= */ false, &call->arena, &call->detail, &txn);
    if (error) return error;
    error = dispatch_run(call, &txn);
    txn_abort(&txn);
    return error;
}

ReadOutcome reader_run(Store *store, Call *call)
{
    call->is_waiting_allowed = true;
    Error error = dispatch_decode(call, 0);
    // Only the server can flush what was read before it is told.
    if (call->method && (is_for_server(call->method) || call->wants_sync)) {
        return READ_IS_FOR_SERVER;
    }
    if (!error) error = run(store, call);
    if (!error && call->wait_ms > 0) return READ_IS_FOR_SERVER;
    call->error = error;
    // A slot or a map that is missing here is no answer of the server's.
    if (error_is_environment(error) || error == ERROR_UNAVAILABLE || error == ERROR_UNIMPLEMENTED) {
        return READ_FAILED;
    }
    dispatch_finish(call, error);
    return READ_DONE;
}
