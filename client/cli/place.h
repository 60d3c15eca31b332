// Where tined keeps its store, for the commands that work on the files.

#pragma once

#include <limits.h>

#include "cli.h"
#include "store/backup.h"

typedef struct Place {
    char directory[PATH_MAX];
} Place;

// Finds the directory of tined's store: --data (an option of the command), $TINE_DATA, or tined's
// default. EXIT_FAILED, said.
MUST_USE int place_find(const Cli *cli, Place *out);

// Prints an error of the engine and returns the exit code for it: EXIT_UNAVAILABLE if another
// process has the store, else EXIT_FAILED.
MUST_USE int place_fail(Error error, const ErrorDetail *detail);

// Shows the progress of a backup's steps at a terminal. Borrowed until the backup ends.
BackupHooks place_progress(void);

// "20261118T151124Z", for names.
typedef struct Stamp {
    char text[20];
} Stamp;

Stamp stamp_now(void);
