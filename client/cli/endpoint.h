// Where tined is: its URL, from the options and the environment, and its token.

#pragma once

#include "cli.h"

// Fills `cli->url`. The first that is given counts: --url, --socket, $TINE_URL, $TINE_SOCKET, the
// place where tined listens by default. EXIT_USAGE, printed.
MUST_USE int endpoint_read(Cli *cli);

// Opens `cli->tine` for the URL, in the place of the one that is open. Connects to nothing yet.
// Returns an ExitCode; a failure was printed.
MUST_USE int endpoint_open(Cli *cli);

// The path of the socket in the URL; NULL for tcp:// and embedded:.
const char *endpoint_socket(const Cli *cli);

// Whether others could listen in the socket's place: it is in /tmp by default, and its directory is
// not this user's alone.
bool endpoint_is_exposed(const Cli *cli);
