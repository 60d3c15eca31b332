// Todos: a session's task list, replaced as a whole.

#pragma once

#include "names.h"
#include "store/store.h"

// ERROR_SESSION_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED.
MUST_USE Error todo_replace(Txn *txn, Ulid session, TodoItem **items, size_t item_count);

// Appends the list, an empty one if there is none, as the content of the bytes field `field`.
MUST_USE Error todo_append_to(Txn *txn, Ulid session, uint32_t field, Buffer *out);

// Counts by status.
TodoSummary todo_summarize(TodoItem **items, size_t item_count);
