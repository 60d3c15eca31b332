// Starting tined, when a command needs one and none listens.

#pragma once

#include "cli.h"

// Makes sure that a tined answers `cli->tine`, which is a client of this socket: one that runs, or
// a new one that leaves after $TINE_IDLE_EXIT (half an hour) without clients and logs to
// $XDG_STATE_HOME/tine/tined.log. However many processes do this at once, one starts and the others
// wait for it. EXIT_UNAVAILABLE, said.
MUST_USE int start_tined(Cli *cli, const char *socket_path);
