// Steps for tests: write a session file of pi line by line, import it into a store in this process,
// look at the result.

#pragma once

#include "harness.h"
#include "importers/pi/pi_import.h"

enum { PI_LINES_BYTES_MAX = 1 << 20 };

// A store in memory and one session file.
typedef struct PiStore {
    Importer importer;             // its report counts all imports
    char session[STORE_ID_BYTES];  // of the last import
    char text[PI_LINES_BYTES_MAX]; // the file
    size_t size;
    char exported[PI_LINES_BYTES_MAX];
} PiStore;

// Allocated, because it is large. For CLEANUP: pi_store_close.
PiStore *pi_store_open(void);
void pi_store_close(PiStore **store);

// Empties the file and adds a header of version 3 with this session ID.
void pi_begin(PiStore *store, const char *id);

// Add to the file. pi_line adds the line's end.
void pi_line(PiStore *store, const char *format, ...) PRINTF_LIKE(2, 3);
void pi_bytes(PiStore *store, const char *bytes);

// Imports the file, which must succeed.
void pi_import_ok(PiStore *store);

// Exports the session. pi_export_is_same checks that it is the file, byte for byte.
void pi_export_is_same(PiStore *store);
const char *pi_export_text(PiStore *store);

// Returns an entry by its ID in the file. The caller frees it (reply_freep).
GetMessageResponse *pi_entry(PiStore *store, const char *id);

GetSessionResponse *pi_session(PiStore *store);

// Appends a user's message at the head, as other clients do.
void pi_append_text(PiStore *store, const char *text);

// Forks the session at the head and continues with the fork.
void pi_fork(PiStore *store);

// Moves the head to an entry of the store; "": to nothing.
void pi_rewind_to(PiStore *store, const char *id);

// Removes the lines from all originals, so that forks are exported from the store.
void pi_forget_lines(PiStore *store);

// Returns the context in one line: "user:a1 assistant:b2 | off p/m", messages with their IDs in the
// file, then thinking level and model. A compaction is "compactionSummary:ID=SUMMARY,TOKENS", with
// "system=TEXT" before it if it has a system prompt.
const char *pi_context(PiStore *store);

// The same with an entry of the file as the leaf. The head does not move.
const char *pi_context_at(PiStore *store, const char *id);

// The same with text and time instead of the ID: "user=hello@1763632800001 | …".
const char *pi_context_texts(PiStore *store);

// Moves the head to an entry of the file; NULL: to nothing.
void pi_rewind(PiStore *store, const char *id);
