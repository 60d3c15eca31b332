// Directories: makes, flushes, checks and removes them.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Makes a directory and those above it that are missing, with mode 0700. The name of each new one
// is flushed to the disk, so that a power cut cannot remove it. ERROR_IO.
MUST_USE Error directory_make(const char *path, ErrorDetail *detail);

// Flushes the names in a directory to the disk. Does nothing on a file system that cannot do it.
// ERROR_IO, ERROR_STORE_FULL.
MUST_USE Error directory_flush(const char *path, ErrorDetail *detail);

// The same for the directory above `path`, which is a directory and no link.
MUST_USE Error directory_flush_above(const char *path, ErrorDetail *detail);

// Checks that the directory, and the link to it if `path` is one, belong to this user or root, and
// that nobody else can remove or replace an entry. ERROR_IO: it is not so, or cannot be read.
MUST_USE Error directory_check_private(const char *path, ErrorDetail *detail);

// Returns whether only this user or root can have put entries there: `path` is missing, or is a
// directory of theirs, no link, that nobody else can write to. Check this before you connect to a
// socket in a directory such as /tmp, where others could listen first.
bool directory_is_exclusive(const char *path);

// Removes a directory, the files in it, and the directories in it that have only files. What is
// deeper stays, and so does the directory then. A missing one is ignored.
void directory_remove(const char *path);
