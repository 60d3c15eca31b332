// Handlers of the task list.

#include "store/todo.h"

#include "rpc/handlers/handler.h"

Error check_replace_session_todos(Rpc *rpc, ReplaceSessionTodosRequest *request)
{
    return check_session(rpc, request->session_id);
}

// ReplaceSessionTodos: replaces the whole list.
Error handle_replace_session_todos(Rpc *rpc, const ReplaceSessionTodosRequest *request,
                                   ReplaceSessionTodosResponse *response)
{
    (void)response;
    Ulid session = session_of(rpc);
    Error error = todo_replace(rpc->txn, session, request->items, request->n_items);
    return error ? error : todo_append_to(rpc->txn, session, reply_record_field(rpc), &rpc->reply);
}

// GetSessionTodos: returns the list with its summary.
Error handle_get_session_todos(Rpc *rpc, const GetSessionTodosRequest *request,
                               GetSessionTodosResponse *response)
{
    (void)response;
    Ulid session;
    Error error = read_session(rpc, request->session_id, &session);
    return error ? error : todo_append_to(rpc->txn, session, reply_record_field(rpc), &rpc->reply);
}
