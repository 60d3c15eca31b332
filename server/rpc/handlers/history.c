// Handlers of the pages of a history, and of its markers.

#include "store/history.h"

#include "rpc/handlers/handler.h"
#include "rpc/handlers/history.h"
#include "store/marker.h"
#include "wire/wire.h"

// The history through an entry never changes, because every later entry has a newer ID.
static Error history_segments(Rpc *rpc, Ulid session, const char *through_message_id, Ulid pin,
                              SegmentList *out)
{
    Ulid through, owner;
    Error error = rpc_optional_id(rpc, "through_message_id", through_message_id, &through);
    if (error) return error;
    if (ulid_is_zero(through)) return origin_segments(rpc->txn, session, pin, out);
    error = origin_resolve(rpc->txn, session, through, &owner);
    return error ? error : origin_segments(rpc->txn, owner, through, out);
}

Error history_begin(Rpc *rpc, const HistoryRequest *request, HistoryPage *page)
{
    *page = (HistoryPage){.query = {.kinds = history_kinds_default(), .before = ULID_MAX}};
    HistoryQuery *query = &page->query;
    Error error = read_session(rpc, request->session_id, &page->session);
    if (error) return error;
    if (request->kind_count > 0) query->kinds = 0;
    for (size_t i = 0; i < request->kind_count; i++) {
        if (request->kinds[i] == MESSAGE_KIND_UNSPECIFIED) {
            return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                            "kinds: UNSPECIFIED is no kind; leave kinds empty for the default");
        }
        query->kinds |= 1u << request->kinds[i];
    }
    Page bounds;
    error = rpc_page(rpc, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &bounds);
    if (error) return error;
    query->limit = bounds.limit;
    query->page_bytes = bounds.bytes;
    query->session = page->session;
    query->is_newest_first = request->newest_first;

    error = cursor_read(rpc, request->cursor, &page->is_later_page, &page->cursor);
    if (error) return error;
    if (!page->is_later_page) {
        page->cursor.pin = ULID_MAX; // nothing in this snapshot is newer
    } else if (query->is_newest_first) {
        query->before = page->cursor.position;
    } else {
        query->after = page->cursor.position;
    }
    error = history_segments(rpc, page->session, request->through_message_id, page->cursor.pin,
                             &page->segments);
    query->segments = &page->segments;
    return error;
}

_Static_assert((int)MESSAGE_CALL_PATCH_BYTES_MAX < (int)LOAN_PIECE_BYTES_MIN,
               "a piece that only lives until the scan moves is copied");

// Takes an entry for the reply: lends its long pieces and copies the others, because a short piece
// is copied faster than the kernel takes it as one more part of a message.
static Error take_for_reply(void *context, const Slice *pieces, size_t count, bool *out_is_enough)
{
    Rpc *rpc = context;
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += pieces[i].size;
    Error error = wire_append_header(&rpc->reply, reply_record_field(rpc), size);
    for (size_t i = 0; !error && i < count; i++) {
        bool is_lent = pieces[i].size >= LOAN_PIECE_BYTES_MIN;
        error = is_lent ? loan_add(&rpc->loan, &rpc->arena, &rpc->reply, pieces[i])
                        : buffer_append(&rpc->reply, pieces[i]);
    }
    *out_is_enough = false;
    return error;
}

Error history_finish(Rpc *rpc, HistoryPage *page, char **out_cursor)
{
    MessageSink sink = {take_for_reply, rpc, LOAN_FROM_BYTES};
    bool may_lend = rpc->loan.is_allowed && !rpc->wants_sync; // a flush may take long
    if (!page->query.sink && may_lend) page->query.sink = &sink;
    bool has_more;
    Error error = history_append_page(rpc->txn, &page->query, reply_record_field(rpc), &rpc->reply,
                                      &has_more, &page->cursor.position);
    if (error || !has_more) return error;
    if (!page->is_later_page) {
        StoreState state;
        error = txn_state(rpc->txn, &state);
        if (error) return error;
        page->cursor.pin = state.last_id;
    }
    return cursor_write(rpc, &page->cursor, out_cursor);
}

Error history_window(Rpc *rpc, HistoryPage *page, uint32_t marker_field)
{
    HistoryQuery *query = &page->query;
    query->skips_open = true;
    MarkerPlace marker;
    Error error =
        marker_newest(rpc->txn, &page->segments, MESSAGE_KIND_COMPACTION, ULID_MAX, &marker);
    if (error || !marker.is_found) return error;
    // A later page starts after the page before it, which was after the cut-off.
    if (!page->is_later_page) query->after = marker.cut_off;
    if (ulid_compare(query->after, marker.message) < 0) {
        bool has_parts = false;
        error = marker_has_parts(rpc->txn, &marker, &has_parts);
        if (has_parts) query->skips_system_before = marker.message;
    }
    if (error || page->is_later_page) return error;
    return message_append_to(rpc->txn, marker.session, marker.message, marker_field, &rpc->reply);
}

// MessagesForSession: returns the current history, or that through an entry, with inherited
// entries.
Error handle_messages_for_session(Rpc *rpc, const MessagesForSessionRequest *request,
                                  MessagesForSessionResponse *response)
{
    HistoryRequest history = {
        .session_id = request->session_id,
        .kinds = request->kinds,
        .kind_count = request->n_kinds,
        .newest_first = request->newest_first,
        .limit = request->limit,
        .cursor = request->cursor,
        .page_bytes = request->page_bytes,
        .through_message_id = request->through_message_id,
    };
    HistoryPage page;
    Error error = history_begin(rpc, &history, &page);
    page.query.sink = rpc->sink;
    return error ? error : history_finish(rpc, &page, &response->next_cursor);
}

// MessagesDirectForSession: returns the same, but only the session's own entries.
Error handle_messages_direct_for_session(Rpc *rpc, const MessagesDirectForSessionRequest *request,
                                         MessagesDirectForSessionResponse *response)
{
    HistoryRequest history = {
        .session_id = request->session_id,
        .kinds = request->kinds,
        .kind_count = request->n_kinds,
        .newest_first = request->newest_first,
        .limit = request->limit,
        .cursor = request->cursor,
        .page_bytes = request->page_bytes,
        .through_message_id = request->through_message_id,
    };
    HistoryPage page;
    Error error = history_begin(rpc, &history, &page);
    if (error) return error;
    page.query.is_own_only = true;
    return history_finish(rpc, &page, &response->next_cursor);
}

// MessagesSinceLatestMarker: returns the live window and the marker that opens it.
Error handle_messages_since_latest_marker(Rpc *rpc, const MessagesSinceLatestMarkerRequest *request,
                                          MessagesSinceLatestMarkerResponse *response)
{
    HistoryRequest history = {
        .session_id = request->session_id,
        .kinds = request->kinds,
        .kind_count = request->n_kinds,
        .limit = request->limit,
        .cursor = request->cursor,
        .page_bytes = request->page_bytes,
        .through_message_id = request->through_message_id,
    };
    HistoryPage page;
    Error error = history_begin(rpc, &history, &page);
    if (!error)
        error = history_window(rpc, &page, FIELD_MESSAGES_SINCE_LATEST_MARKER_RESPONSE_MARKER);
    return error ? error : history_finish(rpc, &page, &response->next_cursor);
}

// LatestMarker: returns the newest marker entry of the current history, or none.
Error handle_latest_marker(Rpc *rpc, const LatestMarkerRequest *request,
                           LatestMarkerResponse *response)
{
    (void)response;
    Ulid session;
    SegmentList segments;
    MarkerPlace marker;
    Error error = read_session(rpc, request->session_id, &session);
    if (!error) {
        error = history_segments(rpc, session, request->through_message_id, ULID_MAX, &segments);
    }
    if (!error) {
        error = marker_newest(rpc->txn, &segments, MESSAGE_KIND_COMPACTION, ULID_MAX, &marker);
    }
    if (error || !marker.is_found) return error;
    return message_append_to(rpc->txn, marker.session, marker.message, reply_record_field(rpc),
                             &rpc->reply);
}

// ListMarkersForSession: lists the marker entries of the current history, oldest first.
Error handle_list_markers_for_session(Rpc *rpc, const ListMarkersForSessionRequest *request,
                                      ListMarkersForSessionResponse *response)
{
    MessageKind kinds[] = {MESSAGE_KIND_COMPACTION};
    HistoryRequest history = {
        .session_id = request->session_id,
        .kinds = kinds,
        .kind_count = 1,
        .limit = request->limit,
        .cursor = request->cursor,
        .page_bytes = request->page_bytes,
        .through_message_id = request->through_message_id,
    };
    HistoryPage page;
    Error error = history_begin(rpc, &history, &page);
    return error ? error : history_finish(rpc, &page, &response->next_cursor);
}
