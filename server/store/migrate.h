// Bringing a store of an older format up to this program's.
//
// What is at the store's place is a whole store at each moment: a copy is made and brought up in
// DIRECTORY/migrating, flushed, and then takes the place of the file by a rename. The old file
// stays as a store of its own in DIRECTORY/before-format-N (or before-format-N-2 … if that is
// taken), until somebody removes it. A migration that was interrupted begins anew.

#pragma once

#include "report/error_detail.h"
#include "store/store.h"

// The oldest format that can be migrated.
enum { MIGRATE_FORMAT_MIN = 1 };

// Brings an attached store, whose format is `version`, up to its options' format, and attaches the
// result. ERROR_STORE_FULL: there is no room for the copy. ERROR_IO, ERROR_CORRUPT. The store is as
// it was when it fails, and nothing of the copy is left.
MUST_USE Error migrate_store(Store *store, uint64_t version, ErrorDetail *detail);
