// File systems: which of them a store can be on.

#pragma once

#include <stdbool.h>

#include "report/error_detail.h"

// Checks whether a store can be in `directory`, which must exist. `type` is statfs's f_type, 0 to
// ask the kernel. ERROR_INVALID_ARGUMENT: not a local file system. ERROR_IO.
MUST_USE Error file_system_check(const char *directory, unsigned long type, ErrorDetail *detail);

// Returns whether locks and a shared map work on a file system with statfs's `f_type`. If not,
// `out_name` is its usual name. Unknown types count as local.
bool file_system_is_local(unsigned long f_type, const char **out_name);
