// Importing one session file of pi.
//
// The entries go to the store batch by batch, each after its parent, and with each entry the bytes
// that it was made from (its original). What the store has already is found by external IDs (source
// "pi") and left alone. So an import that was interrupted goes on where it stopped, and the import
// of a file that has grown adds what is new. The last entry's original is stored after everything
// else: without it an import is not finished, and with it the next import leaves head and
// model alone.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"
#include "importers/importer.h"

// Counts what was done in the importer's report. `name` is the name of the file in messages.
// Returns a status code: STATUS_OK, or that of the failure, which is reported. Lines that are not
// entries are reported and are not a failure.
MUST_USE int pi_import(Importer *importer, FILE *file, const char *name);

// Whether this line, the first of a file, begins a session file of pi.
bool pi_is_session(Slice line);
