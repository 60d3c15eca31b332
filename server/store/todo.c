// Todos: replaces and reads task lists.

#include "store/todo.h"

#include "store/event.h"
#include "store/record.h"
#include "store/session.h"
#include "wire/wire.h"

TodoSummary todo_summarize(TodoItem **items, size_t item_count)
{
    TodoSummary summary = TODO_SUMMARY__INIT;
    summary.total = item_count;
    for (size_t i = 0; i < item_count; i++) {
        const char *status = items[i]->status;
        if (strcmp(status, "completed") == 0) {
            summary.completed++;
        } else if (strcmp(status, "cancelled") == 0) {
            summary.cancelled++;
        } else {
            summary.incomplete++;
        }
        if (strcmp(status, "in_progress") == 0) summary.in_progress++;
    }
    return summary;
}

Error todo_replace(Txn *txn, Ulid session, TodoItem **items, size_t item_count)
{
    Session *head;
    Error error = session_head_for_write(txn, session, &head);
    if (error) return error;
    Todos todos = TODOS__INIT;
    TodoSummary summary = todo_summarize(items, item_count);
    todos.session_id = txn_id_text(txn, session);
    if (!todos.session_id) return arena_error(txn->arena);
    todos.items = items;
    todos.n_items = item_count;
    todos.summary = &summary;
    todos.updated_at = txn->now_ms;
    Slice bytes;
    error = txn_encode(txn->arena, &todos.base, 0, &bytes);
    if (error) return error;
    Key key = key_of_id(session);
    error = record_put(txn, TABLE_TODOS, &key, bytes);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = EVENT_TODOS_REPLACED;
    error = event_put(txn, session, head, &event);
    if (error) return error;
    return session_put_head(txn, session, head);
}

Error todo_append_to(Txn *txn, Ulid session, uint32_t field, Buffer *out)
{
    Key key = key_of_id(session);
    Slice bytes;
    bool found;
    Error error = record_get(txn, TABLE_TODOS, &key, &found, &bytes);
    if (error) return error;
    if (found) return wire_append_bytes(out, field, bytes);

    Todos todos = TODOS__INIT;
    TodoSummary summary = TODO_SUMMARY__INIT;
    todos.session_id = txn_id_text(txn, session);
    if (!todos.session_id) return arena_error(txn->arena);
    todos.summary = &summary;
    error = txn_encode(txn->arena, &todos.base, 0, &bytes);
    if (error) return error;
    return wire_append_bytes(out, field, bytes);
}
