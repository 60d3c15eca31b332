// Message removal. Deleting marks an entry and appends the field deleted_at to its bytes. Purging
// writes the message anew with only the fields that may stay. Neither reads the content of a large
// message, unless it is a marker or was sealed.

#include "store/message_remove.h"

#include "store/event.h"
#include "store/marker.h"
#include "store/message_part.h"
#include "store/preview.h"
#include "store/record.h"
#include "store/totals.h"
#include "wire/wire.h"

typedef struct Removal {
    Ulid id;
    Ulid session;
    Session *session_head;
    MessageHeader header;
    Slice first; // copied, because puts would invalidate it
} Removal;

static Error removal_begin(Txn *txn, Ulid message, Removal *removal, Receipt *receipt)
{
    removal->id = message;
    Error error = message_owner(txn, message, &removal->session);
    if (!error) error = session_head_for_write(txn, removal->session, &removal->session_head);
    Slice first;
    if (!error) error = message_first(txn, removal->session, message, &removal->header, &first);
    if (!error) error = arena_copy(txn->arena, first, &removal->first);
    if (!error) error = message_receipt(txn, removal->first, receipt);
    return error;
}

static Error removal_end(Txn *txn, const Removal *removal, const char *event_type)
{
    Session *head = removal->session_head;
    if (removal->header.kind == MESSAGE_KIND_CONVERSATION) {
        Error error = ERROR_NONE;
        if (removal->header.role == ROLE_USER) {
            error = preview_recompute_first(txn, removal->session, head);
        }
        if (!error &&
            (removal->header.role == ROLE_USER || removal->header.role == ROLE_ASSISTANT)) {
            error = preview_recompute_last(txn, removal->session, head);
        }
        if (error) return error;
    }
    Event event = EVENT__INIT;
    event.type = (char *)(uintptr_t)event_type;
    event.message_id = txn_id_text(txn, removal->id);
    if (!event.message_id) return arena_error(txn->arena);
    event.role = removal->header.role;
    Error error = event_put(txn, removal->session, head, &event);
    if (error) return error;
    return session_put_head(txn, removal->session, head);
}

// Returns the bytes that contain every field before MESSAGE_BRIEF_END: those of the first chunk, or
// all bytes of a sealed message.
static Error brief_bytes(Txn *txn, const Removal *removal, Slice *out)
{
    *out = removal->first;
    if (!removal->header.has_end) return ERROR_NONE;
    MessageHeader header;
    return message_bytes(txn, removal->session, removal->id, &header, out);
}

static Error subtract_usage(Txn *txn, const Removal *removal)
{
    Slice rest;
    Error error = brief_bytes(txn, removal, &rest);
    if (error) return error;
    WireField field;
    Slice last = {NULL, 0}; // the last one counts: a seal adds one
    while (wire_next(&rest, &field)) {
        if (field.number > FIELD_MESSAGE_USAGE && !removal->header.has_end) break;
        if (field.number == FIELD_MESSAGE_USAGE) last = field.bytes;
    }
    if (!last.bytes) return ERROR_NONE;
    Usage *usage;
    error = txn_decode(txn, &usage__descriptor, last, &usage);
    if (error) return error;
    Totals totals = message_usage_totals(usage);
    totals_subtract(removal->session_head->own_totals, &totals);
    return ERROR_NONE;
}

Error message_delete(Txn *txn, Ulid message, Receipt *out_receipt)
{
    Removal removal = {.id = message};
    Error error = removal_begin(txn, message, &removal, out_receipt);
    if (error || removal.header.is_deleted) return error;

    uint8_t field[WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    size_t size = wire_put_varint_field(field, FIELD_MESSAGE_DELETED_AT, (uint64_t)txn->now_ms);
    removal.header.is_deleted = true;
    error = message_extend(txn, removal.session, message, &removal.header, slice(field, size));
    if (!error) {
        error = marker_index_delete(txn, removal.session, removal.header.kind, message);
    }
    if (!error) error = message_parts_delete(txn, removal.session, message);
    if (!error) error = subtract_usage(txn, &removal);
    if (error) return error;
    removal.session_head->entry_count--;
    if (removal.header.kind == MESSAGE_KIND_CONVERSATION) removal.session_head->message_count--;
    return removal_end(txn, &removal, EVENT_MESSAGE_DELETED);
}

static bool field_stays(uint32_t number)
{
    return number < MESSAGE_BRIEF_END && number != FIELD_MESSAGE_NAME &&
           number != FIELD_MESSAGE_EXTERNAL;
}

static Error append_bare_marker(Txn *txn, Slice bytes, uint8_t *out, size_t *size)
{
    Marker *marker;
    Error error = txn_decode(txn, &marker__descriptor, bytes, &marker);
    if (error) return error;
    Marker bare = *marker;
    bare.summary = bare.details_json = bare.first_kept_external = (char *)(uintptr_t) "";
    Slice packed;
    error = txn_encode(txn->arena, &bare.base, 0, &packed);
    if (error) return error;
    *size += wire_put_bytes_field(out + *size, FIELD_MESSAGE_MARKER, packed);
    return ERROR_NONE;
}

// Appends what stays of the fields that are not in the first chunk: the time of a deletion, which
// was added at the end, and a marker without its texts.
static Error append_from_behind(Txn *txn, const Removal *removal, uint8_t *out, size_t *size)
{
    MessageHeader header;
    Slice bytes;
    Error error = message_bytes(txn, removal->session, removal->id, &header, &bytes);
    if (error) return error;
    WireField field;
    if (wire_find(bytes, FIELD_MESSAGE_DELETED_AT, &field)) {
        *size += wire_put_varint_field(out + *size, field.number, field.value);
    }
    if (!wire_find(bytes, FIELD_MESSAGE_MARKER, &field)) return ERROR_NONE;
    return append_bare_marker(txn, field.bytes, out, size);
}

static Error put_emptied(Txn *txn, Removal *removal)
{
    uint8_t *stream = arena_alloc(txn->arena, 2 * VALUE_BYTES_MAX);
    if (!stream) return arena_error(txn->arena);
    size_t size = MESSAGE_HEADER_BYTES;
    WireField field;
    Slice rest;
    Error error = brief_bytes(txn, removal, &rest);
    if (error) return error;
    while (wire_next(&rest, &field)) {
        if (field.number >= MESSAGE_BRIEF_END && !removal->header.has_end) break;
        if (!field_stays(field.number)) continue;
        memcpy(stream + size, field.whole.bytes, field.whole.size);
        size += field.whole.size;
    }
    if (removal->header.is_deleted || removal->header.kind == MESSAGE_KIND_COMPACTION) {
        error = append_from_behind(txn, removal, stream, &size);
        if (error) return error;
    }
    removal->header.is_purged = true;
    removal->header.bytes = (uint32_t)(size - MESSAGE_HEADER_BYTES);
    message_header_encode(&removal->header, stream);
    Key key = key_of_ids(removal->session, removal->id);
    return record_put(txn, TABLE_MESSAGES, &key, slice(stream, size));
}

static Error drop_external(Txn *txn, const Removal *removal)
{
    External *external;
    Error error = message_external(txn, removal->first, &external);
    if (error || !external) return error;
    Key key = message_external_key(external, removal->session);
    return txn_delete(txn, TABLE_MESSAGE_EXTERNAL, &key);
}

Error message_purge(Txn *txn, Ulid message, Receipt *out_receipt)
{
    Removal removal = {.id = message};
    Error error = removal_begin(txn, message, &removal, out_receipt);
    if (error || removal.header.is_purged) return error;
    error = put_emptied(txn, &removal);
    if (!error) error = message_parts_delete(txn, removal.session, message);
    if (!error) error = drop_external(txn, &removal);
    if (error) return error;
    Key key = key_of_ids(removal.session, message);
    error = record_delete(txn, TABLE_ORIGINALS, &key, NULL);
    if (error) return error;
    return removal_end(txn, &removal, EVENT_MESSAGE_PURGED);
}
