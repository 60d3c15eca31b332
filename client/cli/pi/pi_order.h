// The order in which a file's entries can be stored: each after its parent.

#pragma once

#include "base/error.h"
#include "pi/pi_file.h"

// Fills `pi->order`: the file's own order, but for parents that come later, which are moved before
// their first child. A ring of parents is opened at its first entry of the file, which then has
// none; `out_cut` is the first of those, if there is any. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_order(PiFile *pi, uint32_t *out_cut);
