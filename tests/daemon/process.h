// tined as a process of its own.

#pragma once

#include <sys/types.h>

#include "server.h"

enum { OUTPUT_BYTES_MAX = 16 * 1024, PLACE_BYTES_MAX = 160 };

typedef struct Tined {
    pid_t pid;  // 0: does not run
    int notify; // where it says that it is ready
    bool is_ephemeral;
    char data[PLACE_BYTES_MAX], socket[108], log[PLACE_BYTES_MAX], notify_path[108];
} Tined;

// Where it will live: under test_dir, by this name. Starts nothing.
void tined_place(Tined *tined, const char *name);

// Starts it there, with these further arguments (NULL-terminated, or NULL), and waits until it is
// ready; the test fails if it ends before.
void tined_start(Tined *tined, const char *const *arguments);

// Sends a signal and waits for its end. Returns the exit code, or minus the signal that ended it.
int tined_stop(Tined *tined, int signal);
int tined_wait(Tined *tined);

// Opens the socket on which it says how it is; tined_start does this by itself.
void tined_listen(Tined *tined);

// What it says next to systemd; "" if it ends before. And what it has said already, if anything.
const char *tined_said(Tined *tined);
const char *tined_said_before(Tined *tined);

// Forgets all that it has said.
void tined_forget(Tined *tined);

// Kills it if it still runs.
void tined_close(Tined *tined);

// A run that is to end by itself, with what it wrote.
typedef struct Run {
    int code;
    char output[OUTPUT_BYTES_MAX], errors[OUTPUT_BYTES_MAX];
} Run;

// `environment`: "NAME=value" entries on top, NULL-terminated, or NULL.
void tined_run(Run *run, const char *const *arguments, const char *const *environment);

// The same without a program: a function in a child, which ends with what it returns.
void child_run(Run *run, int (*run_in_child)(const void *context), const void *context);

// The same in two steps, to have several at once.
typedef struct Child {
    pid_t pid;
    int output, errors;
} Child;

void child_start(Child *child, int (*run_in_child)(const void *context), const void *context);
void tined_begin(Child *child, const char *const *arguments);
void child_end(Child *child, int status, Run *run); // of waitpid

// What is in a directory and below it: a line for each entry, with its mode, size and time, but
// those whose name holds "lock". To be freed.
char *directory_text(const char *path);

// Reads a small file. "" if there is none.
const char *file_text(const char *path);
bool file_exists(const char *path);
size_t text_line_count(const char *text);
