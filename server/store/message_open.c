// Open messages. A new part is appended to the stored bytes. Replacing a part rewrites the message
// from the first chunk that changes.

#include "store/message_open.h"

#include "store/event.h"
#include "store/message_part.h"
#include "store/open_parts.h"
#include "store/preview.h"
#include "store/record.h"
#include "store/totals.h"
#include "wire/wire.h"

enum { PART_KIND_FIRST = FIELD_PART_TEXT }; // first field of the oneof `kind`, which ends a part

static char PLACEHOLDER[] = "00000000000000000000000000";

typedef struct OpenMessage {
    Ulid id;
    Ulid session;
    Session *session_head;
    MessageHeader header;
    Slice first; // copied, because puts would invalidate it
    size_t part_count;
    bool has_text;
} OpenMessage;

Error part_draft_make(Arena *arena, Part *part, PartDraft *out)
{
    *out = (PartDraft){.part = part};
    out->has_text = part->kind_case == PART__KIND_TEXT && *part->text->text;
    out->id_is_issued = !*part->id;
    if (out->id_is_issued) part->id = PLACEHOLDER;
    enum { GAP = WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX };
    Slice packed;
    Error error = txn_encode(arena, &part->base, GAP, &packed);
    if (error) return error;

    // The arena's memory is writable. Slice is const for its readers only.
    uint8_t header[GAP];
    size_t header_size = wire_put_tag(header, FIELD_MESSAGE_PARTS, WIRE_BYTES);
    header_size += wire_put_varint(header + header_size, packed.size);
    out->bytes = (uint8_t *)(uintptr_t)packed.bytes - header_size;
    memcpy(out->bytes, header, header_size);
    out->size = header_size + packed.size;
    WireField id;
    if (wire_find(packed, FIELD_PART_ID, &id)) {
        out->id = out->bytes + (id.bytes.bytes - out->bytes);
        out->id_size = id.bytes.size;
    }
    return ERROR_NONE;
}

static Error require_open(Txn *txn, const OpenMessage *open)
{
    if (open->header.status != MESSAGE_STATUS_OPEN) {
        return error_say(txn->detail, ERROR_MESSAGE_SEALED,
                         "the message is sealed; only a message with status OPEN accepts parts and "
                         "can be sealed");
    }
    if (open->header.is_deleted || open->header.is_purged) {
        return error_say(txn->detail, ERROR_MESSAGE_SEALED,
                         "the message was %s; it accepts no more parts and cannot be sealed",
                         open->header.is_deleted ? "deleted" : "purged");
    }
    return ERROR_NONE;
}

static Error open_begin(Txn *txn, Ulid message, OpenMessage *open, Receipt *receipt)
{
    open->id = message;
    Error error = message_owner(txn, message, &open->session);
    if (!error) error = session_head_for_write(txn, open->session, &open->session_head);
    Slice first;
    if (!error) error = message_first(txn, open->session, message, &open->header, &first);
    if (!error) error = require_open(txn, open);
    if (!error) error = arena_copy(txn->arena, first, &open->first);
    if (!error) error = message_receipt(txn, open->first, receipt);
    if (error) return error;
    return open_parts_count(txn, open->session, message, &open->part_count, &open->has_text);
}

static Error open_end(Txn *txn, const OpenMessage *open, const char *event_type,
                      const Receipt *receipt)
{
    Event event = EVENT__INIT;
    event.type = (char *)(uintptr_t)event_type;
    event.message_id = receipt->id;
    if (receipt->n_part_ids) event.record_id = receipt->part_ids[0];
    event.role = open->header.role;
    event.totals = receipt->totals;
    event.n_totals = receipt->n_totals;
    Error error = event_put(txn, open->session, open->session_head, &event);
    return error ? error : session_put_head(txn, open->session, open->session_head);
}

static bool has_previews(const MessageHeader *header)
{
    return header->kind == MESSAGE_KIND_CONVERSATION &&
           (header->role == ROLE_USER || header->role == ROLE_ASSISTANT);
}

static Error previews_recompute(Txn *txn, const OpenMessage *open)
{
    if (!has_previews(&open->header)) return ERROR_NONE;
    Error error = ERROR_NONE;
    if (open->header.role == ROLE_USER) {
        error = preview_recompute_first(txn, open->session, open->session_head);
    }
    return error ? error : preview_recompute_last(txn, open->session, open->session_head);
}

static bool is_last(const OpenMessage *open, const char *id)
{
    const Session *head = open->session_head;
    return strcmp(head->head_id, id) == 0 && strcmp(head->last_entry_id, id) == 0;
}

// Returns whether the previews of the message's role hold as much text as they can.
static bool are_previews_full(const OpenMessage *open)
{
    const Session *head = open->session_head;
    bool is_user = open->header.role == ROLE_USER;
    const char *last = is_user ? head->last_user_message : head->last_agent_message;
    if (strlen(last) < LAST_PREVIEW_BYTES_MAX) return false;
    return !is_user || strlen(head->first_message_preview) == FIRST_PREVIEW_BYTES_MAX;
}

// Updates the previews after a part with text was added. Normally the message is the last of the
// log and of the history. Then its first text counts as if the message had been appended with it,
// and further text changes nothing once the previews are full.
static Error previews_note(Txn *txn, const OpenMessage *open, const char *id, const Part *part)
{
    if (!is_last(open, id)) return previews_recompute(txn, open);
    if (open->has_text) {
        return are_previews_full(open) ? ERROR_NONE : previews_recompute(txn, open);
    }
    return preview_note(txn, open->session_head, open->header.kind, open->header.role,
                        slice_of(part->text->text));
}

static Error require_room(Txn *txn, const OpenMessage *open, size_t bytes)
{
    if (bytes <= OPEN_BYTES_MAX) return ERROR_NONE;
    return error_say(
        txn->detail, ERROR_TOO_LONG,
        "the message would grow from %u to %zu bytes; the limit for an open message is %d",
        (unsigned)open->header.bytes, bytes, OPEN_BYTES_MAX);
}

static Error part_add(Txn *txn, OpenMessage *open, const PartDraft *draft, const PartSlot *slot,
                      const char *id)
{
    if (open->part_count >= PART_COUNT_MAX) {
        return error_say(txn->detail, ERROR_TOO_LONG,
                         "the message already has %d parts, which is the limit", PART_COUNT_MAX);
    }
    Error error = require_room(txn, open, open->header.bytes + draft->size);
    if (error) return error;
    size_t index = open->part_count;
    error = message_extend(txn, open->session, open->id, &open->header,
                           slice(draft->bytes, draft->size));
    if (!error) error = message_part_put(txn, open->session, open->id, index, draft->part);
    if (!error && !slot->is_taken)
        error = open_parts_put_slot(txn, open->session, open->id, slot, index);
    if (error) return error;
    bool has_text = open->has_text || draft->has_text;
    error = open_parts_put_count(txn, open->session, open->id, index + 1, has_text);
    if (error || !draft->has_text) return error;
    return previews_note(txn, open, id, draft->part);
}

// The position of a part in a message's bytes.
typedef struct PartPlace {
    bool is_found;
    size_t index;
    size_t start, end; // of its field
    uint32_t kind;
} PartPlace;

static void part_locate(Slice bytes, Slice id, PartPlace *out)
{
    *out = (PartPlace){.is_found = false};
    Slice rest = bytes;
    WireField field, part_field;
    size_t index = 0;
    while (wire_next(&rest, &field)) {
        if (field.number != FIELD_MESSAGE_PARTS) continue;
        Slice fields = field.bytes;
        bool is_it = wire_next(&fields, &part_field) && part_field.number == FIELD_PART_ID &&
                     slice_equal(part_field.bytes, id);
        if (is_it) {
            *out = (PartPlace){.is_found = true, .index = index};
            out->start = (size_t)(field.whole.bytes - bytes.bytes);
            out->end = out->start + field.whole.size;
            while (wire_next(&fields, &part_field)) {
                if (part_field.number >= PART_KIND_FIRST) out->kind = part_field.number;
            }
            return;
        }
        index++;
    }
}

// Stores the stream again from the first changed chunk on, and the first chunk, which has the
// header.
static Error stream_put_from(Txn *txn, const OpenMessage *open, Slice stream, size_t changed_at,
                             size_t old_size)
{
    Key record_key = key_of_ids(open->session, open->id);
    size_t count = (stream.size + VALUE_BYTES_MAX - 1) / VALUE_BYTES_MAX;
    size_t old_count = (old_size + VALUE_BYTES_MAX - 1) / VALUE_BYTES_MAX;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (i + 1) * VALUE_BYTES_MAX <= changed_at) continue;
        Slice rest = slice_skip(stream, i * VALUE_BYTES_MAX);
        if (rest.size > VALUE_BYTES_MAX) rest.size = VALUE_BYTES_MAX;
        Key key = key_with_chunk(&record_key, (uint16_t)i);
        Error error = txn_put(txn, TABLE_MESSAGES, &key, rest);
        if (error) return error;
    }
    for (size_t i = count; i < old_count; i++) {
        Key key = key_with_chunk(&record_key, (uint16_t)i);
        Error error = txn_delete(txn, TABLE_MESSAGES, &key);
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error part_replace(Txn *txn, OpenMessage *open, const PartDraft *draft, Slice bytes,
                          const PartPlace *place)
{
    size_t size = bytes.size - (place->end - place->start) + draft->size;
    Error error = require_room(txn, open, size);
    if (error) return error;
    uint8_t *stream = arena_alloc(txn->arena, MESSAGE_HEADER_BYTES + size);
    if (!stream) return arena_error(txn->arena);
    uint8_t *at = stream + MESSAGE_HEADER_BYTES;
    memcpy(at, bytes.bytes, place->start);
    memcpy(at + place->start, draft->bytes, draft->size);
    memcpy(at + place->start + draft->size, bytes.bytes + place->end, bytes.size - place->end);
    size_t old_size = MESSAGE_HEADER_BYTES + open->header.bytes;
    open->header.bytes = (uint32_t)size;
    message_header_encode(&open->header, stream);
    error = stream_put_from(txn, open, slice(stream, MESSAGE_HEADER_BYTES + size),
                            MESSAGE_HEADER_BYTES + place->start, old_size);
    if (error) return error;

    Key old_key = key_part(open->session, (uint8_t)place->kind, open->id, (uint16_t)place->index);
    if (place->kind != (uint32_t)draft->part->kind_case) {
        error = txn_delete(txn, TABLE_PARTS, &old_key);
    }
    if (!error) error = message_part_put(txn, open->session, open->id, place->index, draft->part);
    bool is_text = place->kind == PART__KIND_TEXT || draft->part->kind_case == PART__KIND_TEXT;
    if (error || !is_text) return error;
    bool has_text = message_has_text(slice(at, size));
    error = open_parts_put_count(txn, open->session, open->id, open->part_count, has_text);
    return error ? error : previews_recompute(txn, open);
}

static Error receipt_name_part(Txn *txn, const PartDraft *draft, Receipt *receipt)
{
    receipt->part_ids = arena_array(txn->arena, char *, 1);
    if (!receipt->part_ids) return arena_error(txn->arena);
    receipt->part_ids[0] = arena_string(txn->arena, slice(draft->id, draft->id_size));
    if (!receipt->part_ids[0]) return arena_error(txn->arena);
    receipt->n_part_ids = 1;
    return ERROR_NONE;
}

Error message_append_part(Txn *txn, Ulid message, const PartDraft *draft, Receipt *out_receipt)
{
    OpenMessage open = {.part_count = 0};
    Error error = open_begin(txn, message, &open, out_receipt);
    if (error) return error;
    if (draft->id_is_issued) {
        char *id = txn_id_text(txn, txn_issue_id(txn));
        if (!id) return arena_error(txn->arena);
        memcpy(draft->id, id, ULID_TEXT_BYTES);
    }
    Slice id = {draft->id, draft->id_size}, bytes;
    PartSlot slot;
    PartPlace place = {.is_found = false};
    error = open_parts_find(txn, open.session, message, id, &slot);
    if (!error) error = receipt_name_part(txn, draft, out_receipt);
    if (!error && slot.is_taken) {
        MessageHeader header;
        error = message_bytes(txn, open.session, message, &header, &bytes);
        if (!error) part_locate(bytes, id, &place);
    }
    if (error) return error;
    if (place.is_found) {
        error = part_replace(txn, &open, draft, bytes, &place);
        return error ? error : open_end(txn, &open, EVENT_PART_REPLACED, out_receipt);
    }
    error = part_add(txn, &open, draft, &slot, out_receipt->id);
    return error ? error : open_end(txn, &open, EVENT_PART_APPENDED, out_receipt);
}

// Writes all numbers, zeros too: otherwise the numbers of an earlier usage would remain.
static size_t put_usage(uint8_t *out, const Usage *usage)
{
    const struct {
        uint32_t field;
        int64_t value;
    } numbers[] = {
        {FIELD_USAGE_INPUT_TOKENS, usage->input_tokens},
        {FIELD_USAGE_OUTPUT_TOKENS, usage->output_tokens},
        {FIELD_USAGE_CACHE_READ_TOKENS, usage->cache_read_tokens},
        {FIELD_USAGE_CACHE_WRITE_TOKENS, usage->cache_write_tokens},
        {FIELD_USAGE_COST_NANO_USD, usage->cost_nano_usd},
        {FIELD_USAGE_REASONING_TOKENS, usage->reasoning_tokens},
        {FIELD_USAGE_TOTAL_TOKENS, usage->total_tokens},
    };
    enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };
    uint8_t content[COUNT * (WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX)];
    size_t size = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size += wire_put_varint_field(content + size, numbers[i].field, (uint64_t)numbers[i].value);
    }
    return wire_put_bytes_field(out, FIELD_MESSAGE_USAGE, slice(content, size));
}

static size_t put_error(uint8_t *out, const ErrorInfo *said)
{
    Slice code = slice_of(said->code), message = slice_of(said->message);
    size_t content_size = wire_bytes_field_size(FIELD_ERROR_INFO_CODE, code.size) +
                          wire_bytes_field_size(FIELD_ERROR_INFO_MESSAGE, message.size);
    size_t size = wire_put_tag(out, FIELD_MESSAGE_ERROR, WIRE_BYTES);
    size += wire_put_varint(out + size, content_size);
    size += wire_put_bytes_field(out + size, FIELD_ERROR_INFO_CODE, code);
    return size + wire_put_bytes_field(out + size, FIELD_ERROR_INFO_MESSAGE, message);
}

// Encodes the fields that end a message and are appended to its bytes.
static Error seal_fields(Txn *txn, const MessageSeal *seal, Slice *out)
{
    size_t error_bytes = seal->error ? strlen(seal->error->code) + strlen(seal->error->message) : 0;
    uint8_t *bytes = arena_alloc(txn->arena, SEAL_BYTES_MAX + error_bytes);
    if (!bytes) return arena_error(txn->arena);
    int64_t completed_at = seal->completed_at ? seal->completed_at : txn->now_ms;
    size_t size = wire_put_varint_field(bytes, FIELD_MESSAGE_STATUS, seal->status);
    size += wire_put_varint_field(bytes + size, FIELD_MESSAGE_COMPLETED_AT, (uint64_t)completed_at);
    if (seal->usage) size += put_usage(bytes + size, seal->usage);
    if (seal->duration_ms) {
        size += wire_put_varint_field(bytes + size, FIELD_MESSAGE_DURATION_MS,
                                      (uint64_t)seal->duration_ms);
    }
    if (*seal->finish_reason) {
        size += wire_put_bytes_field(bytes + size, FIELD_MESSAGE_FINISH_REASON,
                                     slice_of(seal->finish_reason));
    }
    if (seal->error) size += put_error(bytes + size, seal->error);
    *out = slice(bytes, size);
    return ERROR_NONE;
}

// Replaces the usage that the message had by its new one in the session's own totals.
static Error seal_usage(Txn *txn, const OpenMessage *open, const MessageSeal *seal,
                        Receipt *receipt)
{
    if (!seal->usage) return ERROR_NONE;
    Totals delta = message_usage_totals(seal->usage);
    Totals *own = open->session_head->own_totals;
    Slice rest = open->first;
    WireField field;
    while (wire_next(&rest, &field) && field.number <= FIELD_MESSAGE_USAGE) {
        if (field.number != FIELD_MESSAGE_USAGE) continue;
        Usage *usage;
        Error error = txn_decode(txn, &usage__descriptor, field.bytes, &usage);
        if (error) return error;
        Totals before = message_usage_totals(usage);
        totals_subtract(own, &before);
        totals_subtract(&delta, &before);
    }
    Totals now = message_usage_totals(seal->usage);
    totals_add(own, &now);
    if (!seal->propagate_usage) return ERROR_NONE;
    return totals_propagate(txn, open->session, open->session_head, &delta, &receipt->totals,
                            &receipt->n_totals);
}

Error message_seal(Txn *txn, Ulid message, const MessageSeal *seal, Receipt *out_receipt)
{
    OpenMessage open = {.part_count = 0};
    Slice fields;
    Error error = open_begin(txn, message, &open, out_receipt);
    if (!error) error = seal_fields(txn, seal, &fields);
    if (error) return error;
    if (open.header.bytes + fields.size > MESSAGE_BYTES_MAX + SEAL_BYTES_MAX) {
        return error_say(txn->detail, ERROR_TOO_LONG,
                         "error does not fit: the message has %u bytes, and sealing it adds %zu",
                         (unsigned)open.header.bytes, fields.size);
    }
    open.header.status = seal->status;
    open.header.has_end = true;
    error = message_extend(txn, open.session, message, &open.header, fields);
    if (!error) {
        error = open_parts_delete(txn, open.session, message);
    }
    if (!error) error = seal_usage(txn, &open, seal, out_receipt);
    return error ? error : open_end(txn, &open, EVENT_MESSAGE_SEALED, out_receipt);
}
