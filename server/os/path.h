// Paths: makes them absolute and takes them apart.

#pragma once

#include "base/error.h"
#include "report/error_detail.h"

// Makes a relative path absolute, in place. ERROR_INVALID_ARGUMENT: it is longer than `path_bytes`
// then, or there is no current directory.
MUST_USE Error path_make_absolute(char *path, size_t path_bytes, ErrorDetail *detail);

// Writes the directory part of a path: "." if it has none.
void path_directory_of(const char *path, char *out, size_t out_bytes);
