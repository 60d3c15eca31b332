// Rewinds sessions, for `rewind` and `clear`.

#pragma once

#include "cli.h"

// Moves the head of a session to a message of its tree, or to the empty history if `message` is
// NULL. Both are named as the user names them. Prints the outcome. Returns an ExitCode.
int rewind_to(Cli *cli, const char *session, const char *message);
