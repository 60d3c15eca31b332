// Handlers that read and list sessions.

#include "rpc/handlers/handler.h"
#include "store/preview.h"
#include "store/session_list.h"
#include "text/utf8.h"

enum { ID_PREFIX_BYTES_MIN = 4, RESOLVE_LIMIT_DEFAULT = 20 };

// GetSession: returns a session by its ID, even a deleted one.
Error handle_get_session(Rpc *rpc, const GetSessionRequest *request, GetSessionResponse *response)
{
    (void)response;
    Ulid session;
    Error error = rpc_id(rpc, "session_id", request->session_id, &session);
    if (error) return error;
    return session_append_to(rpc->txn, session, /* is_brief= */ false, reply_record_field(rpc),
                             &rpc->reply);
}

static Error list_query(Rpc *rpc, const ListSessionsRequest *request, SessionQuery *query)
{
    *query = session_query_all();
    query->project_dir = request->project_dir;
    query->workspace_id = request->workspace_id;
    query->account_id = request->account_id;
    query->project_id = request->project_id;
    query->role_name = request->role_name;
    query->external_source = request->external_source;
    query->kind = request->kind;
    query->status = request->status;
    query->deleted = request->deleted;
    query->archived = request->archived;
    query->active_since = request->active_since;
    if (request->order != SESSION_ORDER_UNSPECIFIED) query->order = request->order;
    Error error = rpc_optional_id(rpc, "parent_id", request->parent_id, &query->parent);
    if (error) return error;

    size_t folded_max = 3 * QUERY_BYTES_MAX;
    uint8_t *folded = arena_alloc(&rpc->arena, folded_max);
    if (!folded) return arena_error(&rpc->arena);
    query->folded_query = slice(folded, utf8_fold(slice_of(request->query), folded, folded_max));

    Page page;
    error = rpc_page(rpc, request->limit, SESSION_LIST_LIMIT_DEFAULT, SESSION_LIST_LIMIT_MAX,
                     request->page_bytes, &page);
    if (error) return error;
    query->limit = page.limit;
    query->page_bytes = page.bytes;
    Cursor cursor;
    bool found;
    error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error || !found) return error;
    query->before = cursor.position;
    query->before_active = cursor.number;
    return ERROR_NONE;
}

// ListSessions: lists sessions, newest first, filtered, then limited.
Error handle_list_sessions(Rpc *rpc, const ListSessionsRequest *request,
                           ListSessionsResponse *response)
{
    SessionQuery query;
    Error error = list_query(rpc, request, &query);
    if (error) return error;
    SessionPage page;
    error = session_append_page(rpc->txn, &query, reply_record_field(rpc), &rpc->reply, &page);
    if (error || !page.is_more) return error;
    Cursor cursor = {.position = page.last, .number = page.last_active};
    return cursor_write(rpc, &cursor, &response->next_cursor);
}

// LatestUserMessageId: finds it among the session's own entries of the current history.
Error handle_latest_user_message_id(Rpc *rpc, const LatestUserMessageIdRequest *request,
                                    LatestUserMessageIdResponse *response)
{
    Ulid session, message;
    Error error = read_session(rpc, request->session_id, &session);
    if (!error) error = preview_latest_user_message(rpc->txn, session, &message);
    if (error) return error;
    response->message_id = txn_id_text(rpc->txn, message);
    return response->message_id ? ERROR_NONE : arena_error(&rpc->arena);
}

// Finds the smallest and the largest ID that begin with a prefix.
static Error prefix_range(Rpc *rpc, const char *prefix, SessionQuery *query)
{
    size_t size = strlen(prefix);
    char low[ULID_TEXT_BYTES + 1], high[ULID_TEXT_BYTES + 1];
    if (size < ID_PREFIX_BYTES_MIN || size > ULID_TEXT_BYTES) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "id_prefix: %zu characters; give %d to %d of the id's first", size,
                        ID_PREFIX_BYTES_MIN, ULID_TEXT_BYTES);
    }
    memset(low, '0', ULID_TEXT_BYTES);
    memset(high, 'Z', ULID_TEXT_BYTES);
    memcpy(low, prefix, size);
    memcpy(high, prefix, size);
    if (ulid_parse(slice(low, ULID_TEXT_BYTES), &query->id_low) &&
        ulid_parse(slice(high, ULID_TEXT_BYTES), &query->id_high)) {
        return ERROR_NONE;
    }
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "id_prefix: '%s' is not the beginning of an id",
                    prefix);
}

static Error resolve_query(Rpc *rpc, const ResolveSessionRequest *request, SessionQuery *query)
{
    *query = session_query_all();
    switch (request->by_case) {
    case RESOLVE_SESSION_REQUEST__BY_ID_PREFIX: return prefix_range(rpc, request->id_prefix, query);
    case RESOLVE_SESSION_REQUEST__BY_SLUG:
        query->slug = request->slug;
        return rpc_required(rpc, "slug", request->slug);
    case RESOLVE_SESSION_REQUEST__BY_EXTERNAL:
        query->external = request->external;
        return rpc_external(rpc, "", "external", request->external);
    case RESOLVE_SESSION_REQUEST__BY__NOT_SET:
    default:
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "one of id_prefix, slug and external is required");
    }
}

// ResolveSession: finds sessions by the names that people and other systems use for them.
Error handle_resolve_session(Rpc *rpc, const ResolveSessionRequest *request,
                             ResolveSessionResponse *response)
{
    SessionQuery query;
    Page bounds;
    Error error = resolve_query(rpc, request, &query);
    if (!error) {
        error = rpc_page(rpc, request->limit, RESOLVE_LIMIT_DEFAULT, SESSION_LIST_LIMIT_MAX, 0,
                         &bounds);
    }
    if (error) return error;
    query.limit = bounds.limit;
    query.page_bytes = bounds.bytes;
    SessionPage page;
    error = session_append_page(rpc->txn, &query, reply_record_field(rpc), &rpc->reply, &page);
    response->ambiguous = page.count > 1 || page.is_more;
    return error;
}
