// Rewinding, for `rewind` and `clear`.

#pragma once

#include "cli.h"

// Moves the head of a session, as the user names it, to a message of its tree, or to nothing when
// `message` is NULL. Prints the outcome. Returns an ExitCode.
int rewind_to(Cli *cli, const char *session, const char *message);
