// Handlers of memories.

#include "store/memory.h"

#include "rpc/handlers/handler.h"
#include "text/utf8.h"

typedef struct MemoryCall {
    Ulid session;
    Ulid memory;
} MemoryCall;

Error check_remember_session_memory(Rpc *rpc, RememberSessionMemoryRequest *request)
{
    NewMemory *memory = request->memory;
    if (!memory) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "memory is required");
    if (memory->scope == MEMORY_SCOPE_UNSPECIFIED) memory->scope = MEMORY_SCOPE_SESSION;
    if (memory->scope != MEMORY_SCOPE_SESSION) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "memory.scope: only SESSION is accepted");
    }
    memory->content = arena_string(&rpc->arena, utf8_trim(slice_of(memory->content)));
    if (!memory->content) return arena_error(&rpc->arena);
    Error error = rpc_required(rpc, "memory.content", memory->content);
    return error ? error : check_session(rpc, request->session_id);
}

// RememberSessionMemory: stores a fact.
Error handle_remember_session_memory(Rpc *rpc, const RememberSessionMemoryRequest *request,
                                     RememberSessionMemoryResponse *response)
{
    (void)response;
    Ulid session = session_of(rpc), memory;
    Error error = memory_remember(rpc->txn, session, request->memory, &memory);
    if (error) return error;
    return memory_append_to(rpc->txn, session, memory, reply_record_field(rpc), &rpc->reply);
}

Error check_forget_session_memory(Rpc *rpc, ForgetSessionMemoryRequest *request)
{
    MemoryCall *forget = arena_new(&rpc->arena, MemoryCall);
    if (!forget) return arena_error(&rpc->arena);
    rpc->prepared = forget;
    Error error = rpc_id(rpc, "session_id", request->session_id, &forget->session);
    return error ? error : rpc_id(rpc, "memory_id", request->memory_id, &forget->memory);
}

// ForgetSessionMemory: forgets a fact and returns it.
Error handle_forget_session_memory(Rpc *rpc, const ForgetSessionMemoryRequest *request,
                                   ForgetSessionMemoryResponse *response)
{
    (void)request;
    (void)response;
    const MemoryCall *forget = rpc->prepared;
    Error error = memory_forget(rpc->txn, forget->session, forget->memory);
    if (error) return error;
    return memory_append_to(rpc->txn, forget->session, forget->memory, reply_record_field(rpc),
                            &rpc->reply);
}

// ListSessionMemories: lists the memories that are not forgotten, oldest first.
Error handle_list_session_memories(Rpc *rpc, const ListSessionMemoriesRequest *request,
                                   ListSessionMemoriesResponse *response)
{
    Ulid session;
    Page page;
    Cursor cursor;
    bool found;
    Error error = read_session(rpc, request->session_id, &session);
    if (!error) {
        error =
            rpc_page(rpc, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &page);
    }
    if (!error) error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error) return error;
    error = memory_append_page(rpc->txn, session, cursor.position, page.limit, page.bytes,
                               reply_record_field(rpc), &rpc->reply, &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}
