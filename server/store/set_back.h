// Set-back stores: renews a store that a power cut or a disk error took back to its last flush.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

// If the store was taken back, makes it another instance without events: sequences that clients
// have seen will be issued again, and clients notice the new instance. IDs of lost records are not
// issued again, because the next IDs are SET_BACK_SKIP_MS later. All of this is on the disk when
// the function returns. `*out_is_renewed` is set if the store was taken back. The caller must then
// load it again.
MUST_USE Error store_note_set_back(Store *store, ErrorDetail *detail, bool *out_is_renewed);
