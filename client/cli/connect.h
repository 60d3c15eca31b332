// Connecting to tined, which is started if none runs.

#pragma once

#include "cli.h"

// Opens `cli->tine` for `cli->url` unless it is open, and starts a tined if none listens on the
// socket (start.h), unless --no-start. `*out_tine` is `cli->tine`, which the Cli owns. Returns an
// ExitCode; a failure was printed.
MUST_USE int cli_connect(Cli *cli, Tine **out_tine);
