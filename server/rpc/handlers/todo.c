// Handlers: the task list.

#include "store/todo.h"

#include "rpc/handlers/handler.h"

Error check_replace_session_todos(Call *call, ReplaceSessionTodosRequest *request)
{
    return check_session(call, request->session_id);
}

// ReplaceSessionTodos: the whole list at once.
Error handle_replace_session_todos(Call *call, const ReplaceSessionTodosRequest *request,
                                   ReplaceSessionTodosResponse *response)
{
    (void)response;
    Ulid session = session_of(call);
    Error error = todo_replace(call->txn, session, request->items, request->n_items);
    return error ? error : todo_append_to(call->txn, session, REPLY_RECORD, &call->reply);
}

// GetSessionTodos: the list with its summary.
Error handle_get_session_todos(Call *call, const GetSessionTodosRequest *request,
                               GetSessionTodosResponse *response)
{
    (void)response;
    Ulid session;
    Error error = read_session(call, request->session_id, &session);
    return error ? error : todo_append_to(call->txn, session, REPLY_RECORD, &call->reply);
}
