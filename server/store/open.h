// Opening a store: as this program's format has it, and after what a power cut took back.

#pragma once

#include "store/store.h"

// Opens the store in options->directory. The caller closes it with store_close.
// ERROR_UNAVAILABLE: another process (named in `detail`) or this one has it open.
// ERROR_INVALID_ARGUMENT: not on a local file system, or of a newer format. ERROR_IO,
// ERROR_CORRUPT, ERROR_STORE_FULL. Nothing is changed when it fails. A read-only open changes
// nothing but the lock's file; ERROR_IO: there is no store, ERROR_CORRUPT: it lacks a table or is
// empty. A store of an older format is migrated (store/migrate.h); read-only,
// ERROR_INVALID_ARGUMENT.
MUST_USE Error store_open(const StoreOptions *options, ErrorDetail *detail, Store **out_store);
