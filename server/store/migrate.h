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

// Makes the copy of `kv`, the file of `options->directory`, whose format is `version`, in the
// current format. The directory must be locked; nobody may write to `kv` from now on.
// ERROR_STORE_FULL: there is no room for it. ERROR_IO, ERROR_CORRUPT. When it fails nothing of it
// is left.
MUST_USE Error migrate_copy(const StoreOptions *options, Kv *kv, uint64_t version,
                            ErrorDetail *detail);

// Puts the copy in the place of the store's file, which must be closed, and keeps that one.
// ERROR_IO, ERROR_STORE_FULL: the store is as it was.
MUST_USE Error migrate_swap(const StoreOptions *options, ErrorDetail *detail);
