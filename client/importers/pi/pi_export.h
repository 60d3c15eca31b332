// Exporting a session as a session file of pi.
//
// What was imported from such a file comes back byte for byte: the header, then the original of
// each entry with what stood behind it, in the file's own order. Entries that were added since
// follow, and a session that pi never had is written whole, as pi 3 writes it: one line per entry,
// in the order of the log, with the store's IDs where an entry has no other.
//
// A session file of pi stands for itself, so that of a fork has everything that the fork inherited,
// with the labels that it had when it was made. A deleted or purged entry is written as a note
// without content, because others name it as their parent.
//
// pi has no place for the head: it continues from the last entry of a file.

#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "importers/importer.h"

// `session` is an ID of the store. `call` must have an out_status, which says why the export
// failed. Adds the bytes of the entries that were written to `bytes_done`. Returns a status code.
MUST_USE int pi_export(Tine *tine, const TineCallOptions *call, const char *session, FILE *out,
                       atomic_uint_fast64_t *bytes_done);
