// Handlers of the originals of imported entries.

#include "store/original.h"

#include "rpc/handlers/handler.h"

Error check_put_original(Rpc *rpc, PutOriginalRequest *request)
{
    Ulid *message = arena_new(&rpc->arena, Ulid);
    if (!message) return arena_error(&rpc->arena);
    rpc->prepared = message;
    if (request->content.len == 0) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "content is required");
    }
    if (request->content.len > ORIGINAL_BYTES_MAX) {
        return rpc_fail(rpc, ERROR_TOO_LONG, "content: %zu bytes, the limit is %d",
                        request->content.len, ORIGINAL_BYTES_MAX);
    }
    return rpc_id(rpc, "message_id", request->message_id, message);
}

// PutOriginal: stores the bytes that an entry was imported from.
Error handle_put_original(Rpc *rpc, const PutOriginalRequest *request,
                          PutOriginalResponse *response)
{
    Receipt *receipt = arena_new(&rpc->arena, Receipt);
    if (!receipt) return arena_error(&rpc->arena);
    tine__v1__receipt__init(receipt);
    response->receipt = receipt;
    Slice content = {request->content.data, request->content.len};
    return original_put(rpc->txn, *(const Ulid *)rpc->prepared, content, receipt);
}

// ListOriginals: lists the originals of a session's own entries, oldest first.
Error handle_list_originals(Rpc *rpc, const ListOriginalsRequest *request,
                            ListOriginalsResponse *response)
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
    error = original_append_page(rpc->txn, session, cursor.position, page.limit, page.bytes,
                                 reply_record_field(rpc), &rpc->reply, &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}
