// Memories: facts that a session remembers.

#pragma once

#include "names.h"
#include "store/store.h"

// Stores a checked memory, whose content is trimmed. `out` is its id.
// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error memory_remember(Txn *txn, Ulid session, const NewMemory *memory, Ulid *out);

// Forgets softly. ERROR_MEMORY_NOT_FOUND: unknown, another session's, or forgotten already.
MUST_USE Error memory_forget(Txn *txn, Ulid session, Ulid memory);

// Appends a memory, forgotten or not. ERROR_MEMORY_NOT_FOUND.
MUST_USE Error memory_append_to(Txn *txn, Ulid session, Ulid memory, uint32_t field, Buffer *out);

// Appends those that are not forgotten and newer than `after`, oldest first. `out_last` is where to
// go on, zero at the end.
MUST_USE Error memory_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit,
                                  size_t page_bytes, uint32_t field, Buffer *out, Ulid *out_last);
