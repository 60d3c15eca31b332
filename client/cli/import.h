// Imports of what export wrote, line by line (export.h says what is in a line).
//
// Importing the same file again adds nothing: a record keeps the id that it has in the file as its
// external id (source "tine") unless it has an external id already, and is found by that. Where the
// file's ids are the store's own, the store it came from, nothing is done.

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

    // The session that the lines are about.
    Session *session;         // as the file has it; owned; NULL: none yet
    char id[ID_BYTES];        // in the store
    char last[ID_BYTES];      // its last entry in the store
    char file_last[ID_BYTES]; // and in the file
    bool is_own;              // the store's own: nothing is done
    bool is_new;              // made now
    bool has_name;            // an entry has set the title
} Import;

// Each returns an ExitCode; a failure is said with its line.
MUST_USE int import_line(Import *import, Slice line);

// Ends the last session.
MUST_USE int import_end(Import *import);
void import_free(Import *import);

// Its parts.

// Makes the session, or finds it.
MUST_USE int import_session(Import *import, Session *session);
MUST_USE int import_call(Import *import, const CallRecord *call);
MUST_USE int import_entry(Import *import, Message *message);
MUST_USE int import_original(Import *import, const Original *original);
MUST_USE int import_memory(Import *import, const Memory *memory);
MUST_USE int import_todos(Import *import, const Todos *todos);

// Gives the session the state that it has in the file: head, title, totals, archived, deleted.
MUST_USE int import_session_end(Import *import);

// Says what is wrong with the line.
MUST_USE int import_fail(const Import *import, const char *format, ...) PRINTF_LIKE(2, 3);
MUST_USE int import_fail_call(const Import *import);

// The id that a record of the file has in the store; "" if it is not known.
const char *import_mapped(const Import *import, const char *id, char out[ID_BYTES]);

// The external id that it is found by: its own, or `made` filled with its id.
External *import_external(External *own, External *made, char *id);
