// Files in a store's directory: opens them, reads and writes at an offset, and tells them apart.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// Which file this is. Another file gets another id as long as somebody has this one open.
typedef struct FileId {
    dev_t device;
    ino_t inode; // 0: no file
} FileId;

// Returns whether both name the same file. No file is the same as none.
static inline bool file_id_equal(FileId a, FileId b)
{
    return a.inode != 0 && a.inode == b.inode && a.device == b.device;
}

// Reads which file has this name now. Leaves `out_id` alone if there is none. Returns errno.
MUST_USE int file_at_identify(const char *directory, const char *name, FileId *out_id);

// Opens directory/name with mode 0600. Returns -1 and sets errno on failure.
int file_at_open(const char *directory, const char *name, int flags);

// Removes directory/name. Returns 0, or -1 and sets errno.
int file_at_remove(const char *directory, const char *name);

// Reads `size` bytes at `offset`. Bytes past the end of the file read as zeros. Returns false and
// sets errno on failure.
bool file_at_read(int file, void *bytes, size_t size, uint64_t offset);

// Writes `size` bytes at `offset`. Returns false and sets errno on failure.
bool file_at_write(int file, const void *bytes, size_t size, uint64_t offset);
