// Stores of older formats, made of a store of this one.

#pragma once

#include "store/store.h"

// Writes all rows of `store` to data.mdb in `directory`, which exists and has none, as a program of
// format 1 or 2 would have written them: each table in an LMDB database of its own, without
// checksums, records in chunks of 4080 bytes. Format 1 lacks some rows of session_index.
void old_store_write(Store *store, const char *directory, uint64_t format);
