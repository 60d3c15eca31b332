// Store check: verifies all tables of a store against each other, in one read transaction.
//
// The check computes anew what is stored twice, and compares: a session's head record with its log
// and its origins, each index with the records and each record with its indexes, the chain of
// events, and the counters of meta. For a session that is being purged, it checks only what holds
// during a purge.
//
// A check reads everything and may take minutes. Meanwhile its snapshot keeps freed pages from
// being reused.

#pragma once

#include "store/damage.h"

// Checks what is committed at the beginning. Writes may continue. `options` may be NULL. Damage is
// reported and is not an error. ERROR_IO, ERROR_OUT_OF_MEMORY; ERROR_CORRUPT: the file itself is
// broken and cannot be read further.
MUST_USE Error store_check(Store *store, const StoreCheckOptions *options, StoreCheckResult *out);
