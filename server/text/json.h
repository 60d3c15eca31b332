// JSON: is this text one well-formed value (RFC 8259)? Nothing is built and nothing is allocated.

#pragma once

#include "base/slice.h"

// One value with optional white space around it, nested at most JSON_DEPTH_MAX levels. The text
// must be valid UTF-8 already. On failure `out_offset` (may be NULL) is where it went wrong.
bool json_is_valid(Slice text, size_t *out_offset);

// The same for what other programs wrote: nested at most JSON_FOREIGN_DEPTH_MAX levels, and in its
// strings there may be any bytes from 0x20 on, UTF-8 or not.
bool json_is_well_formed(Slice text);
