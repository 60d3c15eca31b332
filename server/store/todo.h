// Todos: stores a session's task list, which is always replaced as a whole.

#pragma once

#include "names.h"
#include "store/store.h"

// Replaces the list. ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error todo_replace(Txn *txn, Ulid session, TodoItem **items, size_t item_count);

// Appends the list, or an empty list if there is none, to `out` as the content of the bytes field
// `field`.
MUST_USE Error todo_append_to(Txn *txn, Ulid session, uint32_t field, Buffer *out);

// Counts the items by status.
TodoSummary todo_summarize(TodoItem **items, size_t item_count);
