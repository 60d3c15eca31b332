// Opening: opens a store, migrates it if its format is older, and deals with the effects of a power
// cut.

#pragma once

#include "store/store.h"

// Opens the store in `options->directory`. The caller closes it with store_close.
// ERROR_UNAVAILABLE: another process (named in `detail`) or this process has it open.
// ERROR_INVALID_ARGUMENT: it is not on a local file system, its format is newer, or it is older and
// the open is read-only. ERROR_IO, ERROR_CORRUPT, ERROR_STORE_FULL. After an error, the store is
// unchanged.
//
// A store of an older format is migrated (store/migrate.h). A read-only open writes to the lock
// file only. It returns ERROR_IO if there is no store, and ERROR_CORRUPT if the store is empty or
// lacks a table.
MUST_USE Error store_open(const StoreOptions *options, ErrorDetail *detail, Store **out_store);
