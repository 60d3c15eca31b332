// Handlers: events.

#include "store/event.h"

#include "rpc/handlers/handler.h"

enum { LIST_EVENTS_LIMIT_DEFAULT = 10000 };

// What a caller's own event must be, kept or not.
static Error check_event(Call *call, const char *type, const char *session_id)
{
    SessionCall *prepared = arena_new(&call->arena, SessionCall);
    if (!prepared) return arena_error(&call->arena);
    call->prepared = prepared;
    Error error = call_required(call, "type", type);
    if (error) return error;
    if (event_type_is_reserved(type)) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "type: '%s' is one of the server's own; choose another", type);
    }
    if (strpbrk(type, "/ \t\r\n")) {
        return call_fail(call, ERROR_INVALID_ARGUMENT,
                         "type: '/' and white space are not allowed; it is part of a topic");
    }
    return call_optional_id(call, "session_id", session_id, &prepared->session);
}

Error check_publish_event(Call *call, PublishEventRequest *request)
{
    return check_event(call, request->type, request->session_id);
}

// PublishEvent: keeps and sends an event of the caller's own.
Error handle_publish_event(Call *call, const PublishEventRequest *request,
                           PublishEventResponse *response)
{
    Ulid session = session_of(call);
    Session *head = NULL;
    Error error = ERROR_NONE;
    if (!ulid_is_zero(session)) error = session_head_for_write(call->txn, session, &head);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = request->type;
    event.message_id = request->message_id;
    event.record_id = request->record_id;
    event.role = request->role;
    event.data_json = request->data_json;
    error = event_put(call->txn, session, head, &event);
    if (!error && head) error = session_put_head(call->txn, session, head);
    if (error) return error;
    response->sequence = event.sequence;
    response->instance_id = event.instance_id;
    response->created_at = event.created_at;
    return ERROR_NONE;
}

Error check_broadcast_event(Call *call, BroadcastEventRequest *request)
{
    call->stores_nothing = true;
    return check_event(call, request->type, request->session_id);
}

// BroadcastEvent: sends an event of the caller's own and keeps nothing.
Error handle_broadcast_event(Call *call, const BroadcastEventRequest *request,
                             BroadcastEventResponse *response)
{
    Ulid session = session_of(call);
    Error error = ulid_is_zero(session) ? ERROR_NONE : session_require_writable(call->txn, session);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = request->type;
    event.message_id = request->message_id;
    event.record_id = request->record_id;
    event.role = request->role;
    event.data_json = request->data_json;
    error = event_broadcast(call->txn, session, &event);
    if (error) return error;
    response->instance_id = event.instance_id;
    response->created_at = event.created_at;
    return ERROR_NONE;
}

// Where a listing begins. One that has waited saw what came before, and need not see it again.
static uint64_t position_of(const Call *call, const ListEventsRequest *request)
{
    return call->wait_after > request->after_sequence ? call->wait_after : request->after_sequence;
}

static Error check_position(Call *call, const ListEventsRequest *request, const StoreState *state)
{
    const char *instance_id = store_instance_id(call->txn->store);
    if (*request->instance_id && strcmp(request->instance_id, instance_id) != 0) {
        return ERROR_STORE_CHANGED;
    }
    if (request->after_sequence > state->last_event_sequence) {
        return call_fail(call, ERROR_STORE_CHANGED,
                         "after_sequence %llu was never reached by this store, whose newest event "
                         "is %llu; read the state anew",
                         (unsigned long long)request->after_sequence,
                         (unsigned long long)state->last_event_sequence);
    }
    if (position_of(call, request) + 1 < state->first_event_sequence) {
        return call_fail(call, ERROR_EVENTS_GONE,
                         "events up to %llu are no longer kept; read the state anew and go on "
                         "after %llu",
                         (unsigned long long)(state->first_event_sequence - 1),
                         (unsigned long long)state->last_event_sequence);
    }
    return ERROR_NONE;
}

// ListEvents: after a sequence; may ask to be run again when there is news.
Error handle_list_events(Call *call, const ListEventsRequest *request, ListEventsResponse *response)
{
    EventQuery query = {.after_sequence = position_of(call, request)};
    StoreState state;
    Page page;
    Error error = call_optional_id(call, "session_id", request->session_id, &query.session);
    SessionBrief brief;
    if (!error && !ulid_is_zero(query.session)) {
        error = session_brief(call->txn, query.session, &brief);
    }
    if (!error) {
        error = call_page(call, request->limit, LIST_EVENTS_LIMIT_DEFAULT, LIST_LIMIT_MAX,
                          request->page_bytes, &page);
    }
    if (!error && request->wait_ms > WAIT_MS_MAX) {
        error = call_fail(call, ERROR_INVALID_ARGUMENT, "wait_ms: %u is over the maximum of %d",
                          request->wait_ms, WAIT_MS_MAX);
    }
    if (!error) error = txn_state(call->txn, &state);
    if (!error) error = check_position(call, request, &state);
    if (error) return error;
    query.limit = page.limit;
    query.page_bytes = page.bytes;
    bool more;
    error = event_list(call->txn, &query, REPLY_RECORD, &call->reply,
                       &response->next_after_sequence, &more);
    if (error) return error;
    if (!more) response->next_after_sequence = state.last_event_sequence;
    response->more = more;
    response->oldest_sequence = state.first_event_sequence;
    response->newest_sequence = state.last_event_sequence;
    response->instance_id = (char *)(uintptr_t)store_instance_id(call->txn->store);
    bool is_empty = buffer_size(&call->reply) == 0 && !more;
    if (is_empty && request->wait_ms > 0 && call->is_waiting_allowed) {
        call->wait_ms = request->wait_ms;
        call->wait_after = state.last_event_sequence;
    }
    return ERROR_NONE;
}
