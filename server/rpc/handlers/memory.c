// Handlers: memories.

#include "store/memory.h"

#include "rpc/handlers/handler.h"
#include "text/utf8.h"

typedef struct MemoryCall {
    Ulid session;
    Ulid memory;
} MemoryCall;

Error check_remember_session_memory(Call *call, RememberSessionMemoryRequest *request)
{
    NewMemory *memory = request->memory;
    if (!memory) return call_fail(call, ERROR_INVALID_ARGUMENT, "memory is required");
    if (memory->scope == MEMORY_SCOPE_UNSPECIFIED) memory->scope = MEMORY_SCOPE_SESSION;
    if (memory->scope != MEMORY_SCOPE_SESSION) {
        return call_fail(call, ERROR_INVALID_ARGUMENT, "memory.scope: only SESSION is accepted");
    }
    memory->content = arena_string(&call->arena, utf8_trim(slice_of(memory->content)));
    if (!memory->content) return arena_error(&call->arena);
    Error error = call_required(call, "memory.content", memory->content);
    return error ? error : check_session(call, request->session_id);
}

// RememberSessionMemory: stores a fact.
Error handle_remember_session_memory(Call *call, const RememberSessionMemoryRequest *request,
                                     RememberSessionMemoryResponse *response)
{
    (void)response;
    Ulid session = session_of(call), memory;
    Error error = memory_remember(call->txn, session, request->memory, &memory);
    if (error) return error;
    return memory_append_to(call->txn, session, memory, REPLY_RECORD, &call->reply);
}

Error check_forget_session_memory(Call *call, ForgetSessionMemoryRequest *request)
{
    MemoryCall *forget = arena_new(&call->arena, MemoryCall);
    if (!forget) return arena_error(&call->arena);
    call->prepared = forget;
    Error error = call_id(call, "session_id", request->session_id, &forget->session);
    return error ? error : call_id(call, "memory_id", request->memory_id, &forget->memory);
}

// ForgetSessionMemory: forgets a fact, and returns it.
Error handle_forget_session_memory(Call *call, const ForgetSessionMemoryRequest *request,
                                   ForgetSessionMemoryResponse *response)
{
    (void)request;
    (void)response;
    const MemoryCall *forget = call->prepared;
    Error error = memory_forget(call->txn, forget->session, forget->memory);
    if (error) return error;
    return memory_append_to(call->txn, forget->session, forget->memory, REPLY_RECORD, &call->reply);
}

// ListSessionMemories: those that are not forgotten, oldest first.
Error handle_list_session_memories(Call *call, const ListSessionMemoriesRequest *request,
                                   ListSessionMemoriesResponse *response)
{
    Ulid session;
    Page page;
    Cursor cursor;
    bool found;
    Error error = read_session(call, request->session_id, &session);
    if (!error) {
        error =
            call_page(call, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &page);
    }
    if (!error) error = cursor_read(call, request->cursor, &found, &cursor);
    if (error) return error;
    error = memory_append_page(call->txn, session, cursor.position, page.limit, page.bytes,
                               REPLY_RECORD, &call->reply, &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(call, &cursor, &response->next_cursor);
}
