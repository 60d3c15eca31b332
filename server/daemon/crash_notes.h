// Crash notes: which starts of tined on a store ended by a signal that tined itself caused.
//
// The notes are lines of a file in the store's directory. A signal handler writes them, so the file
// is opened when tined starts. Two such starts within a minute mean that the next one will end so,
// too: tined then starts in safe mode, until somebody removes the notes. SIGKILL, and signals that
// other processes send, leave no note.

#pragma once

#include "report/error_detail.h"
#include "store/files.h"

enum { CRASH_ACTIVITY_BYTES = 40 };

typedef struct CrashNotes {
    int file; // -1: closed
    StorePath path;
    bool is_loop; // two starts within a minute were noted
    size_t count;
    // The newest note.
    int64_t started_s, ended_s; // since 1970
    int signal;
    char activity[CRASH_ACTIVITY_BYTES]; // what the thread was working on; "" if not known
} CrashNotes;

// Reads the notes of the store in `directory`, and opens the file for the next one. The caller
// calls crash_notes_close or crash_notes_remove. ERROR_IO, ERROR_OUT_OF_MEMORY.
MUST_USE Error crash_notes_open(const char *directory, ErrorDetail *detail, CrashNotes *out);

// Installs the handlers of SIGSEGV, SIGBUS and SIGABRT. They add a note, and end the process as the
// signal would have, with a core if the system is set up so. `notes` must stay until the process
// ends or crash_notes_ignore is called.
void crash_notes_watch(const CrashNotes *notes);

// Gives the signals their default action, in a child process.
void crash_notes_ignore(void);

// Forgets all notes, in the file too: the store was closed in good order, or somebody says that it
// can be used.
void crash_notes_forget(CrashNotes *notes);

// Closes the file. `is_removed`: removes it, too. Nothing happens if it is closed already.
void crash_notes_close(CrashNotes *notes, bool is_removed);
