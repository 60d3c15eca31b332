// Dispatch: from the bytes of a request to a handler, and from its outcome to the bytes of a reply.

#pragma once

#include "rpc/rpc.h"

// Reads the envelope, finds the method, decodes and checks the request, and for a write runs its
// `check`. `decode_budget_bytes` 0: by the request's size.
MUST_USE Error dispatch_decode(Rpc *rpc, size_t decode_budget_bytes);

// Runs the method on a transaction and packs the reply's body, before anything it borrows from the
// transaction is gone.
MUST_USE Error dispatch_run(Rpc *rpc, Txn *txn);

// Puts the envelope around the body, or makes the reply of a failed call, and logs what the
// environment did, a few times a second. After it the reply is complete, whatever happened.
void dispatch_finish(Rpc *rpc, Error error);
