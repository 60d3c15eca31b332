// Drafts. A part without an ID is packed with 26 zeros in its place, the length of every ID's text.
// The write transaction overwrites them.

#include "store/message_draft.h"

#include "wire/wire.h"

static char PLACEHOLDER[] = "00000000000000000000000000";
_Static_assert(sizeof(PLACEHOLDER) == ULID_TEXT_BYTES + 1, "an id's text");

void message_draft_await_call(NewMessage *message)
{
    message->call_id = PLACEHOLDER;
}

void message_draft_set_call(const MessageDraft *draft, Ulid call)
{
    if (!draft->call_id) return;
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(call, text);
    memcpy(draft->call_id, text, ULID_TEXT_BYTES);
}

static void find_call_id(MessageDraft *draft)
{
    Ulid id;
    Slice rest = {draft->bytes, draft->size};
    WireField field;
    bool is_awaited = draft->message->call_id == PLACEHOLDER;
    draft->has_call_id = is_awaited || ulid_parse(slice_of(draft->message->call_id), &id);
    while (is_awaited && !draft->call_id && wire_next(&rest, &field)) {
        if (field.number != FIELD_MESSAGE_CALL_ID) continue;
        draft->call_id = draft->bytes + (field.bytes.bytes - draft->bytes);
    }
}

// Records the position of each part's ID in the packed bytes.
static void find_part_ids(MessageDraft *draft)
{
    Slice rest = {draft->bytes, draft->size};
    WireField part, id;
    size_t index = 0;
    while (wire_next(&rest, &part)) {
        if (part.number != FIELD_MESSAGE_PARTS) continue;
        if (wire_find(part.bytes, FIELD_PART_ID, &id)) {
            draft->part_ids[index++] = draft->bytes + (id.bytes.bytes - draft->bytes);
        }
    }
}

Error message_draft_make(Arena *arena, NewMessage *message, ErrorDetail *detail, MessageDraft *out)
{
    *out = (MessageDraft){.message = message, .created_at = message->created_at};
    message->created_at = 0; // the server writes it
    Totals no_usage = TOTALS__INIT;
    out->has_usage = message->usage != NULL;
    out->usage = message->usage ? message_usage_totals(message->usage) : no_usage;

    out->part_ids = arena_array(arena, uint8_t *, message->n_parts + 1);
    out->part_id_is_issued = arena_array(arena, bool, message->n_parts + 1);
    if (!out->part_ids || !out->part_id_is_issued) return arena_error(arena);
    for (size_t i = 0; i < message->n_parts; i++) {
        if (*message->parts[i]->id) continue;
        message->parts[i]->id = PLACEHOLDER;
        out->part_id_is_issued[i] = true;
    }

    Slice packed;
    Error error = txn_encode(arena, &message->base, MESSAGE_PREFIX_BYTES_MAX, &packed);
    if (error) return error;
    if (packed.size + MESSAGE_PREFIX_BYTES_MAX > MESSAGE_BYTES_MAX) {
        return error_say(detail, ERROR_TOO_LONG,
                         "message has %zu bytes when packed; the limit is %d", packed.size,
                         MESSAGE_BYTES_MAX - MESSAGE_PREFIX_BYTES_MAX);
    }
    // The arena's memory is writable. Slice is const for its readers only.
    out->bytes = (uint8_t *)(uintptr_t)packed.bytes;
    out->size = packed.size;
    find_part_ids(out);
    find_call_id(out);
    return message_text(arena, packed, &out->text);
}
