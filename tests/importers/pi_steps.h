// Files of pi's, written line by line, and a store in this process that takes them.

#pragma once

#include "harness.h"
#include "importers/pi/pi_import.h"

enum { PI_LINES_BYTES_MAX = 1 << 20 };

// A store that is gone at the end, and one session file.
typedef struct PiStore {
    Importer importer;             // its report counts all imports
    char session[STORE_ID_BYTES];  // of the last import
    char text[PI_LINES_BYTES_MAX]; // the file
    size_t size;
    char exported[PI_LINES_BYTES_MAX];
} PiStore;

// On the heap: it is large. For CLEANUP: pi_store_close.
PiStore *pi_store_open(void);
void pi_store_close(PiStore **store);

// Empties the file, and begins it with a header of version 3 and this session id.
void pi_begin(PiStore *store, const char *id);

// Adds to the file; a line gets its end.
void pi_line(PiStore *store, const char *format, ...) PRINTF_LIKE(2, 3);
void pi_bytes(PiStore *store, const char *bytes);

// Imports the file, which must go well; what was new is counted in `counts`.
void pi_import_ok(PiStore *store);

// Exports the session: it must be the file again, byte by byte.
void pi_export_is_same(PiStore *store);
const char *pi_export_text(PiStore *store);

// An entry by its id in the file. Owned: reply_freep.
GetMessageResponse *pi_entry(PiStore *store, const char *id);

GetSessionResponse *pi_session(PiStore *store);

// A user's message at the head, as our own clients append it.
void pi_append_text(PiStore *store, const char *text);

// Goes on with a fork at the head.
void pi_fork(PiStore *store);

// Goes on with a head at this entry of the store; "": at nothing.
void pi_rewind_to(PiStore *store, const char *id);

// Takes the lines of all entries away, so that they are written from what the store has of them.
void pi_forget_lines(PiStore *store);

// What BuildContext gives, in one line: "user:a1 assistant:b2 | thinking=off model=none summary=…".
// Entries are called by their ids in the file. The system prompt of a compaction comes before it as
// "system=text".
const char *pi_context(PiStore *store);

// The same, as it is for an entry of the file as the leaf; the head stays where it is.
const char *pi_context_at(PiStore *store, const char *id);

// The same with what each says and when in the place of its id: "user=hello@1763632800001 | …".
const char *pi_context_texts(PiStore *store);

// The head goes to an entry of the file; NULL: to nothing.
void pi_rewind(PiStore *store, const char *id);
