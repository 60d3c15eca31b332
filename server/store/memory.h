// Memories: stores facts that a session remembers.

#pragma once

#include "names.h"
#include "store/store.h"

// Stores a memory. The caller has checked it and trimmed its content. `*out` is its ID.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error memory_remember(Txn *txn, Ulid session, const NewMemory *memory, Ulid *out);

// Marks a memory as forgotten. ERROR_MEMORY_NOT_FOUND: it does not exist, belongs to another
// session or is forgotten already. ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED,
// ERROR_SESSION_ARCHIVED.
MUST_USE Error memory_forget(Txn *txn, Ulid session, Ulid memory);

// Appends a memory, forgotten or not, to `out` as the content of the bytes field `field`.
// ERROR_MEMORY_NOT_FOUND.
MUST_USE Error memory_append_to(Txn *txn, Ulid session, Ulid memory, uint32_t field, Buffer *out);

// Appends the memories that are newer than `after` and not forgotten, oldest first, each as the
// content of the bytes field `field`. The next page continues after `*out_last`, which is zero
// after the last page.
MUST_USE Error memory_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit,
                                  size_t page_bytes, uint32_t field, Buffer *out, Ulid *out_last);
