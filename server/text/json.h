// Validates JSON (RFC 8259) without building or allocating anything.

#pragma once

#include "base/slice.h"

// Returns whether the text is one value with optional white space around it, nested at most
// JSON_DEPTH_MAX levels. The text must be valid UTF-8. On failure `out_offset` (may be NULL) is the
// offset of the error.
bool json_is_valid(Slice text, size_t *out_offset);

// The same for files of other programs: nested at most JSON_FOREIGN_DEPTH_MAX levels; strings may
// hold any bytes from 0x20 on, UTF-8 or not.
bool json_is_well_formed(Slice text);
