// Reads without an engine: runs the handlers of reads on a store that another process writes.

#pragma once

#include "rpc/rpc.h"

typedef enum ReadOutcome {
    READ_DONE,          // the reply is complete; it may be an error
    READ_IS_FOR_SERVER, // it writes, asks about the server, or would wait for events or the disk
    READ_FAILED,        // the environment failed, see `error` and `detail`; nothing was logged
} ReadOutcome;

// Runs a call on a snapshot of its own. The caller has reset it and set `submitted_ns`.
ReadOutcome reader_run(Store *store, Rpc *rpc);
