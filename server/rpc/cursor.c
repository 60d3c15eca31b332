// A cursor is, in hexadecimal, a version, the hash of the listing, three IDs and a number.

#include "rpc/cursor.h"

#include "store/tables.h"

enum {
    CURSOR_VERSION = 1,
    LISTING_HASH_BYTES = 6,
    CURSOR_BYTES = 1 + LISTING_HASH_BYTES + 3 * ULID_BYTES + 8,
};

// Hashes the request without the fields that may change from page to page.
static Error listing_hash(Rpc *rpc, Hash *out)
{
    const ProtobufCMessageDescriptor *descriptor = rpc->message->descriptor;
    ProtobufCMessage *copy = arena_alloc(&rpc->arena, descriptor->sizeof_message);
    if (!copy) return arena_error(&rpc->arena);
    memcpy(copy, rpc->message, descriptor->sizeof_message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        void *member = (uint8_t *)copy + field->offset;
        if (strcmp(field->name, "cursor") == 0) *(const char **)member = "";
        if (strcmp(field->name, "limit") == 0) *(uint32_t *)member = 0;
        if (strcmp(field->name, "page_bytes") == 0) *(uint32_t *)member = 0;
    }
    Slice packed;
    Error error = txn_encode(&rpc->arena, copy, 0, &packed);
    if (error) return error;
    *out = hash_pair(slice(rpc->method->path, rpc->method->path_bytes), packed);
    return ERROR_NONE;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

Error cursor_read(Rpc *rpc, const char *text, bool *out_found, Cursor *out)
{
    *out = (Cursor){.number = 0};
    *out_found = *text != '\0';
    if (!*out_found) return ERROR_NONE;
    uint8_t bytes[CURSOR_BYTES];
    bool is_ours = strlen(text) == 2 * CURSOR_BYTES;
    for (size_t i = 0; is_ours && i < CURSOR_BYTES; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        is_ours = high >= 0 && low >= 0;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (!is_ours || bytes[0] != CURSOR_VERSION) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "cursor: not a cursor of this server; pass back next_cursor as it came");
    }
    Hash hash;
    Error error = listing_hash(rpc, &hash);
    if (error) return error;
    if (memcmp(bytes + 1, hash.bytes, LISTING_HASH_BYTES) != 0) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "cursor: of another listing; keep all fields but limit and page_bytes as "
                        "they were on the first page");
    }
    Slice fields = {bytes + 1 + LISTING_HASH_BYTES, CURSOR_BYTES - 1 - LISTING_HASH_BYTES};
    out->pin = key_id_at(fields, 0);
    out->position = key_id_at(fields, ULID_BYTES);
    out->bound = key_id_at(fields, 2 * ULID_BYTES);
    out->number = (int64_t)bytes_get_u64(fields.bytes + 3 * ULID_BYTES);
    return ERROR_NONE;
}

Error cursor_write(Rpc *rpc, const Cursor *cursor, char **out_text)
{
    Hash hash;
    Error error = listing_hash(rpc, &hash);
    if (error) return error;
    Key key = {.size = 0};
    key_add_u8(&key, CURSOR_VERSION);
    key_add(&key, hash.bytes, LISTING_HASH_BYTES);
    key_add_id(&key, cursor->pin);
    key_add_id(&key, cursor->position);
    key_add_id(&key, cursor->bound);
    key_add_u64(&key, (uint64_t)cursor->number);
    char *text = arena_alloc(&rpc->arena, 2 * CURSOR_BYTES + 1);
    if (!text) return arena_error(&rpc->arena);
    for (size_t i = 0; i < CURSOR_BYTES; i++) {
        text[2 * i] = "0123456789abcdef"[key.bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[key.bytes[i] & 15];
    }
    text[2 * CURSOR_BYTES] = '\0';
    *out_text = text;
    return ERROR_NONE;
}
