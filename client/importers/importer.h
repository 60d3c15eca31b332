// What an importer works with: the store it writes to, its report, and how it fails.

#pragma once

#include "importers/import_report.h"
#include "names.h"
#include "text/ulid.h"
#include "tine.h"
#include "tine_calls.h"

enum { STORE_ID_BYTES = ULID_TEXT_BYTES + 1 };

typedef struct Importer {
    Tine *tine;           // borrowed
    TineCallOptions call; // for all calls; they write their outcome to `status`
    TineStatus status;
    const char *project_dir; // used instead of the source's directory; NULL: the source's
    ImportReport report;
} Importer;

// Must not be moved afterwards: `call` points to `status`. `tine` is borrowed; `call` (may be NULL)
// is copied, except for its out_status.
void importer_init(Importer *importer, Tine *tine, const TineCallOptions *call);

// Reports one problem. Returns `code`, so that an importer can fail with it.
int importer_fail(Importer *importer, StatusCode code, const char *format, ...) PRINTF_LIKE(3, 4);

// Whether a failure with this status code is the store's: the next file would fail too.
bool importer_store_failed(int code);

// For CLEANUP: frees a message that libtine returned. `pointer` is the address of the variable.
void reply_freep(void *pointer);
