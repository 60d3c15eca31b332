// Dispatch: decodes a request, runs its handler, and encodes the reply.

#pragma once

#include "rpc/rpc.h"

// Reads the envelope, finds the method, decodes and checks the request, and runs the `check` of a
// write. `decode_budget_bytes` bounds the memory of the decoded request; 0: by the request's size.
// Any error may be returned.
MUST_USE Error dispatch_decode(Rpc *rpc, size_t decode_budget_bytes);

// Runs the method on a transaction and encodes the body of the reply at once, because the body may
// borrow from the transaction. Returns the errors of the handler.
MUST_USE Error dispatch_run(Rpc *rpc, Txn *txn);

// Completes the reply: puts the envelope around the body, or makes the reply of an error. Logs
// errors of the environment, a few times a second.
void dispatch_finish(Rpc *rpc, Error error);
