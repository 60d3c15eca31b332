// Copies in the making: a store in a directory NAME.partial-PID, until it is complete and checked.

#pragma once

#include "store/files.h"

// Writes the path of this process's copy for `target`. ERROR_INVALID_ARGUMENT: it is too long.
MUST_USE Error partial_path(const char *target, ErrorDetail *detail, StorePath *out);

// Removes the copies for `directory`/`name` that other processes left behind. The caller holds the
// lock of `directory`, so none of them is in use.
void partial_remove_stale(const char *directory, const char *name);

// From now on SIGINT, SIGTERM and SIGHUP remove this copy before they end the process. NULL: they
// only end it. For a program that does nothing else meanwhile; one copy at a time.
void partial_guard(const char *directory);

// Removes what opening the copy has left beside its data, and what a migration of it kept.
void partial_clean(const char *directory);

// Removes the copy and ends its guard.
void partial_remove(const char *directory);
