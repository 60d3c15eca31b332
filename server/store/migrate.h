// Migration: brings a store of an older format to the format of this program.
//
// There is a complete store in the directory at each moment. A migration copies all rows to a new
// file in DIRECTORY/migrating, flushes it, and renames it over the old file. The old file
// stays as a store of its own in DIRECTORY/before-format-N (or before-format-N-2 and so on, if that
// exists) until somebody removes it. A migration that was interrupted starts again.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

// The oldest format that can be migrated.
enum { MIGRATE_FORMAT_MIN = 1 };

// Migrates an attached store from format `version` to STORE_FORMAT_VERSION, and reopens the result.
// Logs what it needs first, and how far it is every few seconds. ERROR_STORE_FULL: there is no room
// for the copy. ERROR_IO, ERROR_CORRUPT. After an error,
// the store is unchanged and nothing of the copy is left.
MUST_USE Error migrate_store(Store *store, uint64_t version, ErrorDetail *detail);
