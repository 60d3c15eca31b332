// Messages: reads and extends stored messages.

#include "store/message.h"

#include "base/limits.h"
#include "store/record.h"
#include "store/session_index.h"
#include "text/utf8.h"
#include "wire/wire.h"

Error message_header_decode(Txn *txn, Slice first_chunk, MessageHeader *out)
{
    if (first_chunk.size < MESSAGE_HEADER_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "a message is shorter than its header");
    }
    message_header_unpack(first_chunk.bytes, out);
    return ERROR_NONE;
}

void message_header_encode(const MessageHeader *header, uint8_t out[MESSAGE_HEADER_BYTES])
{
    out[0] = (uint8_t)((header->is_deleted ? MESSAGE_FLAG_DELETED : 0) |
                       (header->is_purged ? MESSAGE_FLAG_PURGED : 0) |
                       (header->has_call_id ? MESSAGE_FLAG_CALL_ID : 0) |
                       (header->has_end ? MESSAGE_FLAG_END : 0) |
                       (int)header->status << MESSAGE_FLAG_STATUS_SHIFT);
    out[1] = (uint8_t)header->kind;
    out[2] = (uint8_t)header->role;
    out[3] = 0;
    out[4] = (uint8_t)(header->bytes >> 24);
    out[5] = (uint8_t)(header->bytes >> 16);
    out[6] = (uint8_t)(header->bytes >> 8);
    out[7] = (uint8_t)header->bytes;
}

static Error not_found(Txn *txn, Ulid message)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(message, text);
    return error_say(txn->detail, ERROR_MESSAGE_NOT_FOUND, "there is no message %s", text);
}

Error message_owner(Txn *txn, Ulid message, Ulid *out_owner)
{
    Key key = key_of_id(message);
    Slice value;
    bool found;
    Error error = txn_get(txn, TABLE_MESSAGE_OWNER, &key, &found, &value);
    if (error) return error;
    if (!found) return not_found(txn, message);
    if (value.size != ULID_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "the owner of a message is not an ID");
    }
    Ulid owner = key_id_at(value, 0);
    bool is_readable;
    error = session_is_readable(txn, owner, &is_readable);
    if (error) return error;
    if (!is_readable) return not_found(txn, message);
    *out_owner = owner;
    return ERROR_NONE;
}

Error message_external(Txn *txn, Slice first, External **out)
{
    *out = NULL;
    WireField field;
    while (wire_next(&first, &field) && field.number < MESSAGE_BRIEF_END) {
        if (field.number != FIELD_MESSAGE_EXTERNAL) continue;
        return txn_decode(txn, &external__descriptor, field.bytes, out);
    }
    return ERROR_NONE;
}

Error message_external_in_chunk(Txn *txn, Slice chunk, External **out)
{
    *out = NULL;
    if (chunk.size < MESSAGE_HEADER_BYTES) return ERROR_NONE;
    Error error = message_external(txn, slice_skip(chunk, MESSAGE_HEADER_BYTES), out);
    return error == ERROR_CORRUPT ? ERROR_NONE : error;
}

Error message_by_external(Txn *txn, Ulid session, const External *external, Ulid *out)
{
    *out = ULID_ZERO;
    Key key = message_external_key(external, session);
    Slice value;
    bool found;
    Error error = txn_get(txn, TABLE_MESSAGE_EXTERNAL, &key, &found, &value);
    if (error || !found) return error;
    if (value.size != ULID_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the index row of a message's external ID does not contain an ID");
    }
    Ulid message = key_id_at(value, 0);

    // Compare the record: the hash may have collided.
    MessageHeader header;
    Slice first;
    error = message_first(txn, session, message, &header, &first);
    if (error == ERROR_MESSAGE_NOT_FOUND) {
        return error_say(txn->detail, ERROR_CORRUPT, "the message of an external ID is missing");
    }
    External *stored = NULL;
    if (!error) error = message_external(txn, first, &stored);
    if (error) return error;
    bool is_same = stored && strcmp(stored->source, external->source) == 0 &&
                   strcmp(stored->id, external->id) == 0;
    if (is_same) *out = message;
    return ERROR_NONE;
}

Error message_first(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                    Slice *out_first)
{
    Key key = key_of_ids(session, message);
    Slice chunk;
    bool found;
    Error error = record_get_first(txn, TABLE_MESSAGES, &key, &found, &chunk);
    if (error) return error;
    if (!found) return not_found(txn, message);
    error = message_header_decode(txn, chunk, out_header);
    if (error) return error;
    *out_first = slice_skip(chunk, MESSAGE_HEADER_BYTES);
    return ERROR_NONE;
}

Error message_bytes(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                    Slice *out_bytes)
{
    Key key = key_of_ids(session, message);
    Slice stream;
    bool found;
    Error error = record_get(txn, TABLE_MESSAGES, &key, &found, &stream);
    if (error) return error;
    if (!found) return not_found(txn, message);
    error = message_header_decode(txn, stream, out_header);
    if (error) return error;
    *out_bytes = slice_skip(stream, MESSAGE_HEADER_BYTES);
    if (out_bytes->size != out_header->bytes) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the chunks of a message do not add up to its size");
    }
    return ERROR_NONE;
}

Error message_call_patch(Txn *txn, Ulid session, const MessageHeader *header, Slice first,
                         uint8_t out[MESSAGE_CALL_PATCH_BYTES_MAX], size_t *out_size)
{
    *out_size = 0;
    if (!header->has_call_id) return ERROR_NONE;
    WireField field;
    while (wire_next(&first, &field) && field.number <= FIELD_MESSAGE_CALL_ID) {
        Ulid call;
        if (field.number != FIELD_MESSAGE_CALL_ID) continue;
        if (!ulid_parse(field.bytes, &call)) return ERROR_NONE;
        Key key = key_of_ids(session, call);
        Slice value;
        bool found;
        Error error = record_get_first(txn, TABLE_CALLS, &key, &found, &value);
        if (error || found) return error;
        *out_size = wire_put_bytes_field(out, field.number, slice(NULL, 0));
    }
    return ERROR_NONE;
}

Error message_append_to(Txn *txn, Ulid session, Ulid message, uint32_t field, Buffer *out)
{
    MessageHeader header;
    Slice bytes;
    Error error = message_bytes(txn, session, message, &header, &bytes);
    if (error) return error;
    uint8_t patch[MESSAGE_CALL_PATCH_BYTES_MAX];
    size_t patch_size;
    error = message_call_patch(txn, session, &header, bytes, patch, &patch_size);
    if (!error) error = wire_append_header(out, field, bytes.size + patch_size);
    if (!error) error = buffer_append(out, bytes);
    if (!error) error = buffer_append(out, slice(patch, patch_size));
    return error;
}

static Error chunk_get(Txn *txn, const Key *key, Slice *out)
{
    bool found;
    Error error = txn_get(txn, TABLE_MESSAGES, key, &found, out);
    if (error || found) return error;
    return error_say(txn->detail, ERROR_CORRUPT, "a chunk of a message is missing");
}

Error message_extend(Txn *txn, Ulid session, Ulid message, MessageHeader *header, Slice fields)
{
    Key record_key = key_of_ids(session, message);
    size_t old_size = MESSAGE_HEADER_BYTES + header->bytes;
    size_t last = (old_size - 1) / VALUE_BYTES_MAX;
    header->bytes += (uint32_t)fields.size;

    // The last chunk and the new fields fill one chunk or more.
    Key key = key_with_chunk(&record_key, (uint16_t)last);
    Slice chunk;
    Error error = chunk_get(txn, &key, &chunk);
    if (error) return error;
    if (chunk.size != old_size - last * VALUE_BYTES_MAX) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the last chunk of a message has the wrong size");
    }
    uint8_t *bytes = arena_alloc(txn->arena, chunk.size + fields.size);
    if (!bytes) return arena_error(txn->arena);
    memcpy(bytes, chunk.bytes, chunk.size);
    memcpy(bytes + chunk.size, fields.bytes, fields.size);
    if (last == 0) message_header_encode(header, bytes);
    Slice rest = {bytes, chunk.size + fields.size};
    for (size_t i = last; rest.size > 0; i++) {
        key = key_with_chunk(&record_key, (uint16_t)i);
        size_t size = rest.size < VALUE_BYTES_MAX ? rest.size : VALUE_BYTES_MAX;
        error = txn_put(txn, TABLE_MESSAGES, &key, slice(rest.bytes, size));
        if (error) return error;
        rest = slice_skip(rest, size);
    }
    if (last == 0) return ERROR_NONE;

    key = key_with_chunk(&record_key, 0);
    error = chunk_get(txn, &key, &chunk);
    if (error) return error;
    uint8_t first[VALUE_BYTES_MAX];
    if (chunk.size != sizeof(first)) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the first chunk of a message has the wrong size");
    }
    memcpy(first, chunk.bytes, sizeof(first));
    message_header_encode(header, first);
    return txn_put(txn, TABLE_MESSAGES, &key, slice(first, sizeof(first)));
}

Error message_receipt(Txn *txn, Slice first, Receipt *out)
{
    WireField field;
    while (wire_next(&first, &field) && field.number < MESSAGE_BRIEF_END) {
        char **text = NULL;
        if (field.number == FIELD_MESSAGE_ID) text = &out->id;
        if (field.number == FIELD_MESSAGE_SESSION_ID) text = &out->session_id;
        if (field.number == FIELD_MESSAGE_PARENT_ID) text = &out->parent_id;
        if (text) {
            *text = arena_string(txn->arena, field.bytes);
            if (!*text) return arena_error(txn->arena);
        }
        if (field.number == FIELD_MESSAGE_SEQUENCE) out->sequence = field.value;
        if (field.number == FIELD_MESSAGE_CREATED_AT) {
            out->created_at = (int64_t)field.value;
        }
    }
    return ERROR_NONE;
}

// Returns the next text part that is not empty and moves `*bytes` behind it. Empty if there is
// none.
static Slice next_text(Slice *bytes)
{
    WireField part, text, content;
    while (wire_next(bytes, &part)) {
        if (part.number != FIELD_MESSAGE_PARTS) continue;
        if (!wire_find(part.bytes, FIELD_PART_TEXT, &text)) continue;
        if (!wire_find(text.bytes, FIELD_TEXT_TEXT, &content)) continue;
        if (content.bytes.size > 0) return content.bytes;
    }
    return (Slice){NULL, 0};
}

bool message_has_text(Slice bytes)
{
    return next_text(&bytes).size > 0;
}

Error message_text(Arena *arena, Slice bytes, Slice *out)
{
    uint8_t *joined = NULL;
    bool is_cut = false;
    *out = next_text(&bytes);
    while (!is_cut && out->size > 0 && out->size < FIRST_PREVIEW_BYTES_MAX) {
        Slice text = next_text(&bytes);
        if (text.size == 0) break;
        if (!joined) {
            joined = arena_alloc(arena, FIRST_PREVIEW_BYTES_MAX);
            if (!joined) return arena_error(arena);
            memcpy(joined, out->bytes, out->size);
        }
        joined[out->size++] = ' ';
        Slice part = utf8_cut(text, FIRST_PREVIEW_BYTES_MAX - out->size);
        is_cut = part.size < text.size;
        memcpy(joined + out->size, part.bytes, part.size);
        *out = slice(joined, out->size + part.size);
    }
    return ERROR_NONE;
}

Totals message_usage_totals(const Usage *usage)
{
    Totals totals = TOTALS__INIT;
    totals.input_tokens = usage->input_tokens;
    totals.output_tokens = usage->output_tokens;
    totals.cache_read_tokens = usage->cache_read_tokens;
    totals.cache_write_tokens = usage->cache_write_tokens;
    totals.cost_nano_usd = usage->cost_nano_usd;
    return totals;
}
