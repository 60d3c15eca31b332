// Reads without an engine: the handlers on a store that another process writes.

#pragma once

#include "rpc/rpc.h"

typedef enum ReadOutcome {
    READ_DONE,          // the reply is complete, be it a result or a refusal
    READ_IS_FOR_SERVER, // it writes, asks about the server, or would wait (for news, or the disk)
    READ_FAILED,        // `error` and `detail` say what the environment did; nothing was logged
} ReadOutcome;

// Runs the call on a snapshot of its own. It was reset, and `submitted_ns` set.
ReadOutcome reader_run(Store *store, Rpc *rpc);
