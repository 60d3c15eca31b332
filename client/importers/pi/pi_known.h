// Which entries of a file the store has already.

#pragma once

#include "base/arena.h"
#include "importers/pi/pi_file.h"
#include "importers/pi/pi_model.h"

// What an entry is found by in its session: its own id, or, if another entry has it there, that and
// its line. NULL past the arena's budget.
char *pi_external_id(Arena *arena, const PiFile *file, uint32_t entry);

// Fills store_id and has_original of the entries that the session has, and notes their models. Of
// entries with one id the first that is in the store keeps it, whatever came later. Entries that
// came from version 1 of the file, before pi gave them ids, are found by their place. Returns 0, or
// the code of the call that failed; importer->status says why.
MUST_USE int pi_known(Importer *importer, char *session, PiFile *file, PiModel *model);
