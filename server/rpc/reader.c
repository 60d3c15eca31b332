// Decodes, checks and runs a read as the engine does.

#include "rpc/reader.h"

#include "os/clock.h"
#include "rpc/dispatch.h"

static bool is_for_server(const Method *method)
{
    return method->is_write || method->is_stream || method->needs_server;
}

static Error run(Store *store, Rpc *rpc)
{
    bool has_deadline = rpc->deadline_ns != INT64_MAX;
    if (has_deadline && clock_monotonic_ns() > rpc->deadline_ns) return ERROR_DEADLINE_EXCEEDED;
    Txn txn;
    Error error = txn_begin(store, /* is_write= */ false, &rpc->arena, &rpc->detail, &txn);
    if (error) return error;
    error = dispatch_run(rpc, &txn);
    txn_abort(&txn);
    return error;
}

ReadOutcome reader_run(Store *store, Rpc *rpc)
{
    rpc->is_waiting_allowed = true;
    Error error = dispatch_decode(rpc, 0);
    // Only the server can flush what was read before it is returned.
    if (rpc->method && (is_for_server(rpc->method) || rpc->wants_sync)) {
        return READ_IS_FOR_SERVER;
    }
    if (!error) error = run(store, rpc);
    if (!error && rpc->wait_ms > 0) return READ_IS_FOR_SERVER;
    rpc->error = error;
    // If this process lacks a reader slot or a map, the server may still be able to answer.
    if (error_is_environment(error) || error == ERROR_UNAVAILABLE || error == ERROR_UNIMPLEMENTED) {
        return READ_FAILED;
    }
    dispatch_finish(rpc, error);
    return READ_DONE;
}
