// The check of a store: every table against every other, in one read transaction.
//
// What is kept twice is computed anew and compared: a session's head from its log and its origins,
// each index from the records and each record from its indexes, the chain of events, the counters
// of meta. Sessions under purge are looked at only as far as the purge keeps promises while it
// runs.
//
// A check reads everything and may take minutes; meanwhile its snapshot keeps freed pages from
// being used again.

#pragma once

#include "store/damage.h"

// Checks the store as it is committed now; writes may go on meanwhile. `options` may be NULL.
// Damage is no error: the errors are those of the environment, ERROR_IO and ERROR_OUT_OF_MEMORY,
// and ERROR_CORRUPT where the file itself is broken and cannot be read on.
MUST_USE Error store_check(Store *store, const StoreCheckOptions *options, StoreCheckResult *out);
