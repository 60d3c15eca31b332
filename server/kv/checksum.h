// Checksums: each stored row ends with a hash of its key and its value, so that a changed bit is
// found when the row is read.

#pragma once

#include "base/slice.h"

enum { CHECKSUM_BYTES = 8 };

// Returns the checksum of a row. `key` is the stored key, with its table byte; `value` is the value
// without its checksum. It is stored big-endian, behind the value.
uint64_t checksum_of_row(Slice key, Slice value);
