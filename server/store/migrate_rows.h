// Migrated rows: copies the rows of a store of format 1 or 2, which are in named tables of LMDB,
// into a new file of this format.

#pragma once

#include "store/store.h"

// Copies all rows of `from`, which is attached and has format 1 or 2, to `to`, which is attached
// and empty. `to` then has this format. Damaged rows are copied as they are, for the check to find.
// ERROR_STORE_FULL, ERROR_IO, ERROR_CORRUPT.
MUST_USE Error migrate_rows(Store *from, Store *to, ErrorDetail *detail);
