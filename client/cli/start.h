// Starts tined when a command needs one and none listens.

#pragma once

#include "cli.h"

// Makes sure that a tined answers `cli->tine` on this socket: one that runs, or a new one, which
// ends after $TINE_IDLE_EXIT (half an hour) without clients and logs to
// $XDG_STATE_HOME/tine/tined.log. If many processes do this at once, one starts it and the others
// wait. EXIT_UNAVAILABLE; a failure was printed.
MUST_USE int start_tined(Cli *cli, const char *socket_path);
