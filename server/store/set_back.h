// A store that a power cut or a disk's error took back to its last flush, on its way to be opened.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

// Makes it another instance, without events, if it was taken back: sequences that watchers have
// seen will be issued again, so they are told. Ids that were lost with their records are not issued
// again: ids go on SET_BACK_SKIP_MS after the last one. On the disk when it returns.
// `out_is_renewed`: so it was.
MUST_USE Error store_note_set_back(Store *store, ErrorDetail *detail, bool *out_is_renewed);
