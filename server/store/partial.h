// Unfinished copies: names and removes copies of a store that are not yet complete and checked.
// Such a copy is in a directory NAME.partial-PID.

#pragma once

#include "store/files.h"

// Returns the path of this process's copy for `target`. ERROR_INVALID_ARGUMENT: it is too long.
MUST_USE Error partial_path(const char *target, ErrorDetail *detail, StorePath *out);

// Removes copies for `directory`/`name` that other processes left. The caller must hold the lock of
// `directory`, so that none of them is in use.
void partial_remove_stale(const char *directory, const char *name);

// Makes SIGINT, SIGTERM and SIGHUP remove this copy before they end the process. NULL: they only
// end the process. For programs that do nothing else meanwhile. One copy at a time.
void partial_guard(const char *directory);

// Removes the files that opening the copy added, and the store that a migration of it kept.
void partial_clean(const char *directory);

// Removes the copy and resets the signals.
void partial_remove(const char *directory);
