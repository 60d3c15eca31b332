// The manifest of a backup: a small text file beside data.mdb that says how long each file of the
// backup is and which hash it has, so that a change of any byte is found, also of bytes that no row
// uses. docs/storage-format.md has its form.
//
// A manifest is only true as long as nobody writes to the store. So whoever opens the directory for
// writing, or puts another store into it, removes the manifest first (manifest_remove).

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "report/error_detail.h"

enum { MANIFEST_VERSION = 1 };

typedef struct Manifest {    // what it says about the store; the files are read from the directory
    bool is_known;           // false: the store is damaged, and the rest is not known
    const char *instance_id; // borrowed
    uint64_t event_sequence; // of the newest event
    uint64_t log_position;   // of the last commit (kv/commit_row.h)
    int64_t time_ms;
} Manifest;

// Hashes the data file in `directory`, writes the manifest, and flushes it to the disk. ERROR_IO,
// ERROR_STORE_FULL, ERROR_OUT_OF_MEMORY: a part of it may be there.
MUST_USE Error manifest_write(const char *directory, const Manifest *manifest, ErrorDetail *detail);

// Compares the files in `directory` with its manifest. `*out_found` is false if it has none.
// ERROR_CORRUPT: a file is missing, or is not as the manifest says, or the manifest itself is
// damaged; `detail` says which. ERROR_INVALID_ARGUMENT: a newer tine wrote the manifest. ERROR_IO,
// ERROR_OUT_OF_MEMORY.
MUST_USE Error manifest_verify(const char *directory, ErrorDetail *detail, bool *out_found);

bool manifest_exists(const char *directory);

// Removes the manifest, if there is one, and flushes that to the disk. Call it before anything in
// the directory is changed, with the lock of the directory. ERROR_IO.
MUST_USE Error manifest_remove(const char *directory, ErrorDetail *detail);
