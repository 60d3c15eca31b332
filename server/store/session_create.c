// Session creation: writes the rows, index entries, origin and event of a new session.

#include "store/session_create.h"

#include "store/event.h"
#include "store/origin.h"
#include "store/planted.h"
#include "store/record.h"
#include "store/session_active.h"
#include "store/session_index.h"

static Error external_check(Txn *txn, const Session *settings)
{
    if (!settings->external) return ERROR_NONE;
    Ulid holder;
    Error error = session_index_external_holder(txn, settings->external, &holder);
    if (error || ulid_is_zero(holder)) return error;
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(holder, text);
    return error_say(txn->detail, ERROR_EXTERNAL_TAKEN,
                     "session %s already has external ID '%s' from source '%s'", text,
                     settings->external->id, settings->external->source);
}

// Fills root_id and sets `*out_parent` to the ID of the parent, zero if there is none.
static Error root_fill(Txn *txn, Session *settings, Ulid *out_parent)
{
    *out_parent = ULID_ZERO;
    if (!*settings->parent_id) {
        settings->root_id = settings->id;
        return ERROR_NONE;
    }
    if (!ulid_parse(slice_of(settings->parent_id), out_parent)) return ERROR_INVALID_ARGUMENT;
    Session *parent;
    Error error = session_settings(txn, *out_parent, &parent);
    if (error) return error;
    settings->root_id = parent->root_id;
    return ERROR_NONE;
}

static Error put_head(Txn *txn, Ulid id, const Session *settings, const SessionOrigin *origin)
{
    Session head = SESSION__INIT;
    Totals totals = TOTALS__INIT, own_totals = TOTALS__INIT;
    head.totals = &totals;
    head.own_totals = &own_totals;
    head.status = SESSION_STATUS_IDLE;
    head.updated_at = txn->now_ms;
    head.last_active_at = settings->created_at;
    if (origin->is_set) {
        head.head_id = txn_id_text(txn, origin->message);
        if (!head.head_id) return arena_error(txn->arena);
    }
    Event event = EVENT__INIT;
    event.type = EVENT_SESSION_CREATED;
    event.record_id = settings->parent_id;
    Error error = event_put(txn, id, &head, &event);
    if (!error) error = session_put_head(txn, id, &head);
    if (!error) error = session_move_active(txn, id, SESSION_IS_NEW, settings->created_at);
    return error;
}

Error session_create(Txn *txn, Session *settings, SlugPolicy slug_policy,
                     const SessionOrigin *origin, Ulid *out_id)
{
    Error error = external_check(txn, settings);
    if (!error) error = origin_check_depth(txn, origin);
    if (!error) {
        error =
            session_index_settle_slug(txn, settings->slug, slug_policy, ULID_ZERO, &settings->slug);
    }
    if (error) return error;

    Ulid id = txn_issue_id(txn), parent;
    settings->id = txn_id_text(txn, id);
    if (!settings->id) return arena_error(txn->arena);
    if (settings->created_at == 0) settings->created_at = txn->now_ms;
    error = root_fill(txn, settings, &parent);
    if (error) return error;
    if (origin->is_set) {
        settings->fork_message_id = txn_id_text(txn, origin->message);
        if (!settings->fork_message_id) return arena_error(txn->arena);
    }

    error = session_put_settings(txn, id, settings);
    if (!error) {
        error = session_index_update(txn, id, (SessionIndexed){.settings = NULL},
                                     (SessionIndexed){settings, SESSION_STATUS_IDLE});
    }
    if (!error && origin->is_set) error = origin_put(txn, id, id, origin);
    if (!error && !ulid_is_zero(parent)) {
        Key key = key_of_ids(parent, id);
        uint8_t kind = (uint8_t)settings->kind;
        error = txn_put(txn, TABLE_CHILDREN, &key, slice(&kind, 1));
    }
    if (!error) error = put_head(txn, id, settings, origin);
    *out_id = id;
    return error;
}

Error session_fork_origin(Txn *txn, Ulid source, const ForkPoint *point, SessionOrigin *out)
{
    *out = (SessionOrigin){.is_set = true};
    Ulid message = point->message;
    if (point->kind == FORK_AT_HEAD) {
        Session *head;
        Error error = session_head(txn, source, &head);
        if (error) return error;
        if (!*head->head_id) return ERROR_NONE;
        if (!ulid_parse(slice_of(head->head_id), &message)) {
            return error_say(txn->detail, ERROR_CORRUPT, "a stored head_id is not an ID");
        }
        out->message = message;
        return message_owner(txn, message, &out->session);
    }
    Error error = origin_resolve(txn, source, message, &out->session);
    if (error) return error;
    if (PLANTED(5, true, false)) out->session = source;
    out->message = message;
    if (point->kind == FORK_THROUGH) return ERROR_NONE;

    MessageHeader header;
    Slice first;
    error = message_first(txn, out->session, message, &header, &first);
    if (error) return error;
    Receipt receipt = RECEIPT__INIT;
    error = message_receipt(txn, first, &receipt);
    if (error) return error;
    *out = (SessionOrigin){.is_set = true};
    if (!*receipt.parent_id) return ERROR_NONE;
    if (!ulid_parse(slice_of(receipt.parent_id), &out->message)) {
        return error_say(txn->detail, ERROR_CORRUPT, "a stored parent_id is not an ID");
    }
    return message_owner(txn, out->message, &out->session);
}
