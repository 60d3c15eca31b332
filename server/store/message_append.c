// Appending one entry: first checks everything, then writes everything.
//
// Rows are written in this order: the external ID; the origin, if the entry starts a branch; the
// entry's chunks; its owner; its other index rows; the head records of the ancestors, with
// propagate_usage; the title, for a NAME; the event. The put of the external ID is also its check,
// and it changes nothing if the ID is taken. Rows that are written once for several entries come
// last: by_active, unless the session is already last there, and the head record of the session.

#include "store/message_append.h"

#include "base/limits.h"
#include "store/event.h"
#include "store/marker.h"
#include "store/message_part.h"
#include "store/open_parts.h"
#include "store/origin.h"
#include "store/preview.h"
#include "store/record.h"
#include "store/session_active.h"
#include "store/totals.h"
#include "wire/wire.h"

// The result of the checks: where the entry goes.
typedef struct Place {
    Session *head;
    Ulid parent;       // zero: at the beginning
    Ulid parent_owner; // zero if the parent is
    bool is_branch;    // the parent is not the head
    Ulid cut_off;      // of a marker
} Place;

Error stored_id(Txn *txn, const char *text, Ulid *out)
{
    *out = ULID_ZERO;
    if (!*text || ulid_parse(slice_of(text), out)) return ERROR_NONE;
    return error_say(txn->detail, ERROR_CORRUPT, "a stored ID is malformed");
}

Error head_expect(Txn *txn, const Session *head, Ulid expected)
{
    Ulid actual;
    Error error = stored_id(txn, head->head_id, &actual);
    if (error) return error;
    if (ulid_equal(actual, expected)) return ERROR_NONE;
    return error_say(txn->detail, ERROR_HEAD_MOVED,
                     "the head is '%s', not expected_head_id; read the session and try again",
                     head->head_id);
}

static Error place_parent(Txn *txn, const MessageAppend *append, Place *place)
{
    Ulid head_id;
    Error error = stored_id(txn, place->head->head_id, &head_id);
    if (error) return error;
    place->parent = append->has_parent ? append->parent : head_id;
    place->is_branch = !ulid_equal(place->parent, head_id);
    place->parent_owner = ULID_ZERO;
    if (ulid_is_zero(place->parent)) return ERROR_NONE;
    if (place->is_branch) {
        return origin_resolve(txn, append->session, place->parent, &place->parent_owner);
    }
    place->parent_owner = append->session; // may be wrong, but only branches use it
    return ERROR_NONE;
}

static Error check_external(Txn *txn, const MessageAppend *append)
{
    const External *external = append->draft->message->external;
    if (!external) return ERROR_NONE;
    Ulid holder;
    Error error = message_by_external(txn, append->session, external, &holder);
    if (error || ulid_is_zero(holder)) return error;
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(holder, text);
    return error_say(txn->detail, ERROR_EXTERNAL_TAKEN,
                     "message %s already has external ID '%s' from source '%s'", text, external->id,
                     external->source);
}

static Error place_check(Txn *txn, const MessageAppend *append, Place *place)
{
    const NewMessage *message = append->draft->message;
    Error error = place_parent(txn, append, place);
    if (error || message->kind != MESSAGE_KIND_COMPACTION) return error;
    error = check_external(txn, append); // this error comes before those of the marker
    return error ? error : marker_cut_off(txn, message->marker, place->parent, &place->cut_off);
}

// Puts the external ID. The rows of this table lie anywhere in their tree. A lookup before the put
// would read one more path of pages; one put does both.
static Error put_external(Txn *txn, const MessageAppend *append, Ulid id)
{
    const External *external = append->draft->message->external;
    if (!external) return ERROR_NONE;
    Key key = message_external_key(external, append->session);
    bool is_put;
    Error error =
        kv_put_new(txn->kv, TABLE_MESSAGE_EXTERNAL, key_slice(&key), ulid_slice(&id), &is_put);
    if (error || is_put) return error;
    error = check_external(txn, append);
    return error ? error : txn_put(txn, TABLE_MESSAGE_EXTERNAL, &key, ulid_slice(&id));
}

static size_t put_id_field(uint8_t *out, uint32_t number, const char *id)
{
    return wire_put_bytes_field(out, number, slice(id, ULID_TEXT_BYTES));
}

// Writes the header and the server's fields in front of the draft's bytes, and stores all of them.
static Error put_entry(Txn *txn, const MessageAppend *append, const Receipt *receipt, Ulid id)
{
    const MessageDraft *draft = append->draft;
    uint8_t prefix[MESSAGE_PREFIX_BYTES_MAX];
    size_t size = MESSAGE_HEADER_BYTES;
    size += put_id_field(prefix + size, FIELD_MESSAGE_ID, receipt->id);
    size += put_id_field(prefix + size, FIELD_MESSAGE_SESSION_ID, receipt->session_id);
    if (*receipt->parent_id) {
        size += put_id_field(prefix + size, FIELD_MESSAGE_PARENT_ID, receipt->parent_id);
    }
    size += wire_put_varint_field(prefix + size, FIELD_MESSAGE_SEQUENCE, receipt->sequence);
    size += wire_put_varint_field(prefix + size, FIELD_MESSAGE_CREATED_AT,
                                  (uint64_t)receipt->created_at);

    MessageHeader header = {
        .has_call_id = draft->has_call_id,
        .status = draft->message->status,
        .kind = draft->message->kind,
        .role = draft->message->role,
        .bytes = (uint32_t)(size - MESSAGE_HEADER_BYTES + draft->size),
    };
    message_header_encode(&header, prefix);
    uint8_t *stream = draft->bytes - size;
    memcpy(stream, prefix, size);
    Key key = key_of_ids(append->session, id);
    Error error = record_insert(txn, TABLE_MESSAGES, &key, slice(stream, size + draft->size));
    if (error) return error;
    key = key_of_id(id);
    return txn_put(txn, TABLE_MESSAGE_OWNER, &key, ulid_slice(&append->session));
}

static Error put_indexes(Txn *txn, const MessageAppend *append, const Place *place, Ulid id,
                         const Receipt *receipt)
{
    const NewMessage *message = append->draft->message;
    Error error = message_parts_put(txn, append->session, id, message->parts, message->n_parts);
    if (!error && message->status == MESSAGE_STATUS_OPEN) {
        error = open_parts_put(txn, append->session, id, receipt->part_ids, receipt->n_part_ids,
                               append->draft->text.size > 0);
    }
    if (error) return error;
    return marker_index_put(txn, append->session, message->kind, id, place->cut_off);
}

// Issues IDs for the parts that have none, writes them into the packed bytes, and lists the IDs of
// all parts in the receipt.
static Error issue_part_ids(Txn *txn, const MessageDraft *draft, Receipt *receipt)
{
    size_t count = draft->message->n_parts;
    if (count == 0) return ERROR_NONE;
    receipt->part_ids = arena_array(txn->arena, char *, count);
    if (!receipt->part_ids) return arena_error(txn->arena);
    for (size_t i = 0; i < count; i++) {
        if (!draft->part_id_is_issued[i]) {
            receipt->part_ids[i] = draft->message->parts[i]->id;
            continue;
        }
        receipt->part_ids[i] = txn_id_text(txn, txn_issue_id(txn));
        if (!receipt->part_ids[i]) return arena_error(txn->arena);
        memcpy(draft->part_ids[i], receipt->part_ids[i], ULID_TEXT_BYTES);
    }
    receipt->n_part_ids = count;
    return ERROR_NONE;
}

static Error head_advance(Txn *txn, const MessageAppend *append, Session *head, Ulid id,
                          int64_t created_at)
{
    const MessageDraft *draft = append->draft;
    // The time of the first entry replaces that of the session, so that imported old entries count
    // as old.
    bool is_first = head->next_sequence == 0;
    if (is_first || created_at > head->last_active_at) head->last_active_at = created_at;
    head->next_sequence++;
    head->entry_count++;
    if (draft->message->kind == MESSAGE_KIND_CONVERSATION) head->message_count++;
    if (draft->has_usage) totals_add(head->own_totals, &draft->usage);
    char *id_text = txn_id_text(txn, id);
    if (!id_text) return arena_error(txn->arena);
    head->head_id = id_text;
    head->last_entry_id = id_text;
    return preview_note(txn, head, draft->message->kind, draft->message->role, draft->text);
}

static Error receipt_fill(Txn *txn, const MessageAppend *append, const Place *place, Ulid id,
                          int64_t created_at, Receipt *receipt)
{
    receipt->id = txn_id_text(txn, id);
    receipt->session_id = txn_id_text(txn, append->session);
    receipt->parent_id = txn_id_text(txn, place->parent);
    if (!receipt->id || !receipt->session_id || !receipt->parent_id) {
        return arena_error(txn->arena);
    }
    receipt->sequence = place->head->next_sequence;
    receipt->created_at = created_at;
    return issue_part_ids(txn, append->draft, receipt);
}

// Writes the origin of an entry that does not follow the head, and computes the last previews anew.
static Error put_branch(Txn *txn, const MessageAppend *append, const Place *place, Ulid origin)
{
    SessionOrigin target = {true, place->parent_owner, place->parent};
    Error error = origin_put(txn, append->session, origin, &target);
    if (error) return error;
    return preview_recompute_last(txn, append->session, place->head);
}

static Error put_all(Txn *txn, const MessageAppend *append, Place *place, Receipt *receipt,
                     Ulid *out_id)
{
    const MessageDraft *draft = append->draft;
    Session *head = place->head;
    int64_t created_at = draft->created_at ? draft->created_at : txn->now_ms;
    Ulid origin = place->is_branch ? txn_issue_id(txn) : ULID_ZERO; // before the entry's ID
    Ulid id = txn_issue_id(txn);
    Error error = put_external(txn, append, id);
    if (!error && place->is_branch) error = put_branch(txn, append, place, origin);
    if (error) return error;
    *out_id = id;

    error = receipt_fill(txn, append, place, id, created_at, receipt);
    if (!error) error = put_entry(txn, append, receipt, id);
    if (!error) error = put_indexes(txn, append, place, id, receipt);
    if (!error) error = head_advance(txn, append, head, id, created_at);
    if (!error && draft->message->kind == MESSAGE_KIND_NAME) {
        error = session_take_name(txn, append->session, head, draft->message->text);
    }
    if (!error && append->propagate_usage && draft->has_usage) {
        error = totals_propagate(txn, append->session, head, &draft->usage, &receipt->totals,
                                 &receipt->n_totals);
    }
    if (error) return error;

    Event event = EVENT__INIT;
    bool is_marker = draft->message->kind == MESSAGE_KIND_COMPACTION;
    event.type = is_marker ? EVENT_MARKER_ADDED : EVENT_MESSAGE_APPENDED;
    event.message_id = receipt->id;
    event.role = draft->message->role;
    event.totals = receipt->totals;
    event.n_totals = receipt->n_totals;
    return event_put(txn, append->session, head, &event);
}

Error message_append_with_head(Txn *txn, Session *head, const MessageAppend *append,
                               Receipt *out_receipt, Ulid *out_id)
{
    Place place = {.head = head};
    Error error = place_check(txn, append, &place);
    if (error) return error;
    return put_all(txn, append, &place, out_receipt, out_id);
}

Error head_store(Txn *txn, Ulid session, const Session *head, int64_t old_active)
{
    Error error = session_move_active(txn, session, old_active, head->last_active_at);
    return error ? error : session_put_head(txn, session, head);
}

Error message_append(Txn *txn, const MessageAppend *append, Receipt *out_receipt, Ulid *out_id)
{
    Session *head;
    Error error = session_head_for_write(txn, append->session, &head);
    if (!error && append->has_expected_head) {
        error = head_expect(txn, head, append->expected_head);
    }
    if (error) return error;
    int64_t old_active = head->last_active_at;
    error = message_append_with_head(txn, head, append, out_receipt, out_id);
    return error ? error : head_store(txn, append->session, head, old_active);
}
