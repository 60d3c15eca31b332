// Finds which entries of a file are in the store already.

#pragma once

#include "base/arena.h"
#include "importers/pi/pi_file.h"
#include "importers/pi/pi_model.h"

// Returns the external ID of an entry: its own ID, or "ID@LINE" if another entry has its ID in the
// store. NULL if the arena is used up.
char *pi_external_id(Arena *arena, const PiFile *file, uint32_t entry);

// Fills store_id and has_original of the entries that the session has, and notes their models. If
// several entries have the same ID, the one that was stored first keeps it. Entries that were
// stored from version 1 of the file, before pi gave them IDs, are found by their number. Returns a
// status code; `importer->status` says why a call failed.
MUST_USE int pi_known(Importer *importer, char *session, PiFile *file, PiModel *model);
