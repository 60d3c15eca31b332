// JSON: is this text one well-formed value (RFC 8259)? Nothing is built and nothing is allocated.

#pragma once

#include "base/slice.h"

// One value with optional white space around it, nested at most JSON_DEPTH_MAX levels. The text
// must be valid UTF-8 already. On failure `out_offset` (may be NULL) is where it went wrong.
bool json_is_valid(Slice text, size_t *out_offset);
