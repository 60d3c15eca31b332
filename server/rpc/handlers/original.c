// Handlers: the originals of imported entries.

#include "store/original.h"

#include "rpc/handlers/handler.h"

Error check_put_original(Call *call, PutOriginalRequest *request)
{
    Ulid *message = arena_new(&call->arena, Ulid);
    if (!message) return arena_error(&call->arena);
    call->prepared = message;
    if (request->content.len == 0) {
        return call_fail(call, ERROR_INVALID_ARGUMENT, "content is required");
    }
    if (request->content.len > ORIGINAL_BYTES_MAX) {
        return call_fail(call, ERROR_TOO_LONG, "content: %zu bytes, the limit is %d",
                         request->content.len, ORIGINAL_BYTES_MAX);
    }
    return call_id(call, "message_id", request->message_id, message);
}

// PutOriginal: keeps the bytes that an entry was imported from.
Error handle_put_original(Call *call, const PutOriginalRequest *request,
                          PutOriginalResponse *response)
{
    Receipt *receipt = arena_new(&call->arena, Receipt);
    if (!receipt) return arena_error(&call->arena);
    tine__v1__receipt__init(receipt);
    response->receipt = receipt;
    Slice content = {request->content.data, request->content.len};
    return original_put(call->txn, *(const Ulid *)call->prepared, content, receipt);
}

// ListOriginals: of a session's own entries, oldest first.
Error handle_list_originals(Call *call, const ListOriginalsRequest *request,
                            ListOriginalsResponse *response)
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
    error = original_append_page(call->txn, session, cursor.position, page.limit, page.bytes,
                                 REPLY_RECORD, &call->reply, &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(call, &cursor, &response->next_cursor);
}
