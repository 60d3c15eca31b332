// Handler of ListParts, which finds parts of a session by kind, name and call.

#include "store/part_list.h"

#include "rpc/handlers/handler.h"

// ListParts: lists parts by the index of parts, in the order of their messages.
Error handle_list_parts(Rpc *rpc, const ListPartsRequest *request, ListPartsResponse *response)
{
    PartQuery query = {
        .kinds = request->kinds,
        .kind_count = request->n_kinds,
        .name = slice_of(request->name),
        .call_id = slice_of(request->call_id),
    };
    Page page;
    Cursor cursor;
    bool found;
    Error error = read_session(rpc, request->session_id, &query.session);
    for (size_t i = 0; !error && i < request->n_kinds; i++) {
        if (request->kinds[i] != PART_KIND_UNSPECIFIED) continue;
        error = rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                         "kinds: UNSPECIFIED is no kind; leave kinds empty for all");
    }
    if (!error) {
        error =
            rpc_page(rpc, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &page);
    }
    if (!error) error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error) return error;
    query.limit = page.limit;
    query.page_bytes = page.bytes;
    PartPosition position = {cursor.position, (uint16_t)cursor.number};
    bool more;
    error =
        part_append_page(rpc->txn, &query, &position, &more, reply_record_field(rpc), &rpc->reply);
    if (error || !more) return error;
    cursor.position = position.message;
    cursor.number = position.index;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}
