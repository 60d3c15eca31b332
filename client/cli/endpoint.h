// The URL and the token of tined, from the options and the environment.

#pragma once

#include "cli.h"

// Fills `cli->url` from the first of these that is given: --url, --socket, $TINE_URL, $TINE_SOCKET;
// otherwise with the place where tined listens by default. EXIT_USAGE; a failure was printed.
MUST_USE int endpoint_read(Cli *cli);

// Opens `cli->tine` for the URL and closes the one that was open. Does not connect yet. Returns an
// ExitCode; a failure was printed.
MUST_USE int endpoint_open(Cli *cli);

// Returns the path of the socket in the URL; NULL for tcp:// and embedded:.
const char *endpoint_socket(const Cli *cli);

// Returns whether others could listen in the place of tined: the socket is the default one below
// /tmp, and its directory is not private to this user.
bool endpoint_is_exposed(const Cli *cli);
