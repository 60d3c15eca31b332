// Handlers of events.

#include "store/event.h"

#include "rpc/handlers/handler.h"

enum { LIST_EVENTS_LIMIT_DEFAULT = 10000 };

// Checks an event of the caller's, whether it is stored or only broadcast.
static Error check_event(Rpc *rpc, const char *type, const char *session_id)
{
    SessionCall *prepared = arena_new(&rpc->arena, SessionCall);
    if (!prepared) return arena_error(&rpc->arena);
    rpc->prepared = prepared;
    Error error = rpc_required(rpc, "type", type);
    if (error) return error;
    if (event_type_is_reserved(type)) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "type: '%s' is one of the server's own; choose another", type);
    }
    if (strpbrk(type, "/ \t\r\n")) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "type: '/' and white space are not allowed; it is part of a topic");
    }
    return rpc_optional_id(rpc, "session_id", session_id, &prepared->session);
}

Error check_publish_event(Rpc *rpc, PublishEventRequest *request)
{
    return check_event(rpc, request->type, request->session_id);
}

// PublishEvent: stores and sends an event of the caller's.
Error handle_publish_event(Rpc *rpc, const PublishEventRequest *request,
                           PublishEventResponse *response)
{
    Ulid session = session_of(rpc);
    Session *head = NULL;
    Error error = ERROR_NONE;
    if (!ulid_is_zero(session)) error = session_head_for_write(rpc->txn, session, &head);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = request->type;
    event.message_id = request->message_id;
    event.record_id = request->record_id;
    event.role = request->role;
    event.data_json = request->data_json;
    error = event_put(rpc->txn, session, head, &event);
    if (!error && head) error = session_put_head(rpc->txn, session, head);
    if (error) return error;
    response->sequence = event.sequence;
    response->instance_id = event.instance_id;
    response->created_at = event.created_at;
    return ERROR_NONE;
}

Error check_broadcast_event(Rpc *rpc, BroadcastEventRequest *request)
{
    rpc->stores_nothing = true;
    return check_event(rpc, request->type, request->session_id);
}

// BroadcastEvent: sends an event of the caller's and stores nothing.
Error handle_broadcast_event(Rpc *rpc, const BroadcastEventRequest *request,
                             BroadcastEventResponse *response)
{
    Ulid session = session_of(rpc);
    Error error = ulid_is_zero(session) ? ERROR_NONE : session_require_writable(rpc->txn, session);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = request->type;
    event.message_id = request->message_id;
    event.record_id = request->record_id;
    event.role = request->role;
    event.data_json = request->data_json;
    error = event_broadcast(rpc->txn, session, &event);
    if (error) return error;
    response->instance_id = event.instance_id;
    response->created_at = event.created_at;
    return ERROR_NONE;
}

// Finds where a listing begins. A listing that has waited has seen the events before and skips
// them.
static uint64_t position_of(const Rpc *rpc, const ListEventsRequest *request)
{
    return rpc->wait_after > request->after_sequence ? rpc->wait_after : request->after_sequence;
}

static Error check_position(Rpc *rpc, const ListEventsRequest *request, const StoreState *state)
{
    const char *instance_id = store_instance_id(rpc->txn->store);
    if (*request->instance_id && strcmp(request->instance_id, instance_id) != 0) {
        return ERROR_STORE_CHANGED;
    }
    if (request->after_sequence > state->last_event_sequence) {
        return rpc_fail(rpc, ERROR_STORE_CHANGED,
                        "after_sequence %llu was never reached by this store, whose newest event "
                        "is %llu; read the state anew",
                        (unsigned long long)request->after_sequence,
                        (unsigned long long)state->last_event_sequence);
    }
    if (position_of(rpc, request) + 1 < state->first_event_sequence) {
        return rpc_fail(rpc, ERROR_EVENTS_GONE,
                        "events up to %llu are no longer kept; read the state anew and go on "
                        "after %llu",
                        (unsigned long long)(state->first_event_sequence - 1),
                        (unsigned long long)state->last_event_sequence);
    }
    return ERROR_NONE;
}

// ListEvents: lists the events after a sequence; may ask to run again when there are events.
Error handle_list_events(Rpc *rpc, const ListEventsRequest *request, ListEventsResponse *response)
{
    EventQuery query = {.after_sequence = position_of(rpc, request)};
    StoreState state;
    Page page;
    Error error = rpc_optional_id(rpc, "session_id", request->session_id, &query.session);
    SessionBrief brief;
    if (!error && !ulid_is_zero(query.session)) {
        error = session_brief(rpc->txn, query.session, &brief);
    }
    if (!error) {
        error = rpc_page(rpc, request->limit, LIST_EVENTS_LIMIT_DEFAULT, LIST_LIMIT_MAX,
                         request->page_bytes, &page);
    }
    if (!error && request->wait_ms > WAIT_MS_MAX) {
        error = rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "wait_ms: %u is over the maximum of %d",
                         request->wait_ms, WAIT_MS_MAX);
    }
    if (!error) error = txn_state(rpc->txn, &state);
    if (!error) error = check_position(rpc, request, &state);
    if (error) return error;
    query.limit = page.limit;
    query.page_bytes = page.bytes;
    bool more;
    error = event_list(rpc->txn, &query, reply_record_field(rpc), &rpc->reply,
                       &response->next_after_sequence, &more);
    if (error) return error;
    if (!more) response->next_after_sequence = state.last_event_sequence;
    response->more = more;
    response->oldest_sequence = state.first_event_sequence;
    response->newest_sequence = state.last_event_sequence;
    response->instance_id = (char *)(uintptr_t)store_instance_id(rpc->txn->store);
    bool is_empty = buffer_size(&rpc->reply) == 0 && !more;
    if (is_empty && request->wait_ms > 0 && rpc->is_waiting_allowed) {
        rpc->wait_ms = request->wait_ms;
        rpc->wait_after = state.last_event_sequence;
    }
    return ERROR_NONE;
}
