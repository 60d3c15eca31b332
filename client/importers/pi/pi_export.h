// Exporting a session as a file of pi's.
//
// What was imported from one comes back byte for byte: the header, and each entry's original with
// what stood behind it. What was appended since, and all of a session that pi never saw, is written
// as pi 3 writes it: a line per entry, in the log's order, with ids of ours where there are no
// others. A fork's file has all that the fork inherited, with its lines, for a file of pi's stands
// for itself. A deleted or purged entry is written as a note without content, for others hang below
// it.
//
// pi keeps no leaf: it goes on from a file's last entry, whatever the session's head is.

#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "importers/importer.h"

// `session` is an ID of the store. `call` must have an out_status, which says why the export
// failed. Adds the bytes of the entries that were written to `bytes_done`. Returns a status code.
MUST_USE int pi_export(Tine *tine, const TineCallOptions *call, const char *session, FILE *out,
                       atomic_uint_fast64_t *bytes_done);
