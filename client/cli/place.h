// Stores as files: where they are, who has them, and one put in the place of another.

#pragma once

#include <limits.h>

#include "cli.h"

typedef struct Place {
    char directory[PATH_MAX];
    int lock; // -1: not held
} Place;

// The directory of tined's store: --data (an option of the command), $TINE_DATA, or where tined
// keeps it by itself. EXIT_FAILED, said.
MUST_USE int place_find(const Cli *cli, Place *out);

// Takes the store from everybody, as tined does: refuses while one has it. EXIT_UNAVAILABLE, said.
MUST_USE int place_lock(Place *place);

// Gives it back. For CLEANUP: place_release.
void place_release(Place *place);

// A path below the directory, `name` with this process's id: for a copy in the making. Removes
// those that others left behind; the place must be locked. EXIT_FAILED, said.
MUST_USE int place_partial(const Place *place, const char *name, char out[PATH_MAX]);

// Removes this copy when the process is interrupted, from now on; NULL: none any more.
void partial_guard(const char *directory);

// Removes a copy in the making.
void partial_remove(const char *directory);

// Opening a copy leaves files that guard it while it is open; they are no part of it.
void partial_clean(const char *directory);

// Puts the data of a copy in the making in the place of the store's, at once or not at all, and
// removes the rest of the copy. The place must be locked. With `keep_directory` (must not exist)
// the old data is a store of its own there, as broken as it was. EXIT_FAILED, said: the old store
// is untouched.
MUST_USE int place_swap(const Place *place, const char *partial, const char *keep_directory);

// The size of a store's file; 0 without one.
uint64_t place_bytes(const char *directory);

// "20261118T151124Z", for names.
typedef struct Stamp {
    char text[20];
} Stamp;

Stamp stamp_now(void);
