// Which entries of a file the store has already.

#pragma once

#include "base/arena.h"
#include "cli.h"
#include "pi/pi_file.h"

// What an entry is found by in its session: its own id, or, if a later entry has the same one, that
// and its line. NULL past the arena's budget.
char *pi_external_id(Arena *arena, const PiFile *file, uint32_t entry);

// Fills store_id and has_original of the entries that the session has. Returns 0, or the code of
// the call that failed; cli->status says why.
MUST_USE int pi_known(Cli *cli, char *session, PiFile *file);
