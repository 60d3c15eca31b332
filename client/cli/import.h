// Imports the files that export writes, line by line (export.h describes the lines).
//
// Importing the same file again adds nothing. A record keeps its ID of the file as its external ID
// (source "tine"), unless it has an external ID already, and is found by it. Nothing is done in the
// store that the file was exported from.

#pragma once

#include "cli.h"
#include "id_map.h"
#include "importers/import_report.h"

typedef struct Import {
    Cli *cli;
    ImportReport *report;    // counts what was done; borrowed
    const char *project_dir; // instead of the file's; NULL: the file's
    size_t line;             // of the file, from 1
    bool has_header;
    IdMap ids;

    // The session that the lines belong to.
    Session *session;         // as the file has it; owned; NULL: none yet
    char id[ID_BYTES];        // in the store
    char last[ID_BYTES];      // its last entry in the store
    char file_last[ID_BYTES]; // and in the file
    bool is_own;              // it was exported from this store: nothing is done
    bool is_new;              // this import has made it
    bool has_name;            // an entry of the file sets the title
} Import;

// Each returns an exit code. A failure is printed with its line.
MUST_USE int import_line(Import *import, Slice line);

// Ends the last session.
MUST_USE int import_end(Import *import);
void import_free(Import *import);

// Steps of the import.

// Finds the session or makes it.
MUST_USE int import_session(Import *import, Session *session);
MUST_USE int import_call(Import *import, const CallRecord *call);
MUST_USE int import_entry(Import *import, Message *message);
MUST_USE int import_original(Import *import, const Original *original);
MUST_USE int import_memory(Import *import, const Memory *memory);
MUST_USE int import_todos(Import *import, const Todos *todos);

// Sets the state that the session has in the file: head, title, totals, archived, deleted.
MUST_USE int import_session_end(Import *import);

// Prints what is wrong with the line.
MUST_USE int import_fail(const Import *import, const char *format, ...) PRINTF_LIKE(2, 3);
MUST_USE int import_fail_call(const Import *import);

// Returns the ID in the store of a record of the file; "" if it is not known.
const char *import_mapped(const Import *import, const char *id, char out[ID_BYTES]);

// Returns the external ID that a record is found by: its own, or `made`, filled with its ID.
External *import_external(External *own, External *made, char *id);
