// Connecting to tined. Starts one if none runs.

#pragma once

#include "cli.h"

// Opens `cli->tine` unless it is open, and starts a tined if none listens on the socket (start.h),
// unless --no-start was given. `*out_tine` is `cli->tine`, which the Cli owns. Returns an ExitCode;
// a failure was printed.
MUST_USE int cli_connect(Cli *cli, Tine **out_tine);
