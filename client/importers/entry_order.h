// The order in which the entries of a file can be stored: each after its parent.

#pragma once

#include <stdint.h>

#include "base/error.h"

#define ENTRY_NONE UINT32_MAX

// `parents[i]` is the parent of entry i, or ENTRY_NONE. Fills `order`: the file's order, except
// that a parent that comes later in the file is moved before its first child. A ring of parents is
// opened at its entry that comes first in the file: its parent becomes ENTRY_NONE. `out_cut` is the
// first entry that lost its parent this way, or ENTRY_NONE. ERROR_OUT_OF_MEMORY.
MUST_USE Error entry_order(uint32_t *parents, uint32_t count, uint32_t *order, uint32_t *out_cut);
