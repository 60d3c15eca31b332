// One run of the export: what its steps share.

#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "importers/importer.h"
#include "importers/pi/pi_aliases.h"
#include "importers/pi/pi_originals.h"

typedef struct PiExport {
    Tine *tine;                       // borrowed
    const TineCallOptions *call;      // borrowed; its status says why the export failed
    FILE *out;                        // borrowed
    Session *session;                 // borrowed
    atomic_uint_fast64_t *bytes_done; // borrowed

    // Where the file stands.
    bool is_line_open; // the last thing written did not end its line
    bool is_verbatim;  // originals are written as they are, with what stands around their lines
    unsigned version;  // of the session whose entries are written
    Arena arena;       // of one line

    PiOriginals originals;
    PiAliases aliases;
} PiExport;

// Each returns a status code that is not STATUS_OK. The first is for the status of a call that
// failed; the others fill in the status.
MUST_USE int pi_export_fail_call(const PiExport *export);
MUST_USE int pi_export_fail(const PiExport *export, StatusCode code, const char *format, ...)
    PRINTF_LIKE(3, 4);
MUST_USE int pi_export_fail_memory(const PiExport *export);

// Fails if the output could not be written. Returns a status code.
MUST_USE int pi_export_check_output(const PiExport *export);

// Gets an entry by its ID in the store. The caller frees `*out`. Returns a status code.
MUST_USE int pi_export_get(const PiExport *export, const char *id, GetMessageResponse **out);

// Takes the originals of `session` from here on; see is_verbatim.
void pi_export_use_originals(PiExport *export, const Session *session, bool is_verbatim);
