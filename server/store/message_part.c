// Part index: writes and deletes its rows.

#include "store/message_part.h"

#include <assert.h>

#include "base/limits.h"

static const uint8_t INDEXED_KINDS[] = {
    PART_KIND_OPEN,  PART__KIND_TOOL_USE,  PART__KIND_TOOL_RESULT,
    PART__KIND_FILE, PART__KIND_EXTENSION,
};

static size_t put_string(uint8_t *out, const char *text)
{
    size_t size = strlen(text);
    assert(size <= STRING_BYTES_MAX);
    out[0] = (uint8_t)(size >> 8);
    out[1] = (uint8_t)size;
    memcpy(out + 2, text, size);
    return 2 + size;
}

bool message_part_row(const Part *part, uint8_t *out_value, size_t *out_size)
{
    const char *name = "", *call_id = "";
    switch (part->kind_case) {
    case PART__KIND_TOOL_USE:
        name = part->tool_use->name;
        call_id = part->tool_use->id;
        break;
    case PART__KIND_TOOL_RESULT:
        name = part->tool_result->tool_name;
        call_id = part->tool_result->tool_use_id;
        break;
    case PART__KIND_FILE:
        name = part->file->filename;
        if (strlen(name) > STRING_BYTES_MAX) name = "";
        break;
    case PART__KIND_EXTENSION: name = part->extension->type; break;
    case PART__KIND_TEXT:
    case PART__KIND_THINKING:
    case PART__KIND_IMAGE:
    case PART__KIND__NOT_SET:
    default: return false;
    }
    size_t size = put_string(out_value, name);
    size += put_string(out_value + size, call_id);
    *out_size = size;
    return true;
}

Error message_parts_put(Txn *txn, Ulid session, Ulid message, Part **parts, size_t part_count)
{
    for (size_t i = 0; i < part_count; i++) {
        Error error = message_part_put(txn, session, message, i, parts[i]);
        if (error) return error;
    }
    return ERROR_NONE;
}

Error message_part_put(Txn *txn, Ulid session, Ulid message, size_t index, const Part *part)
{
    uint8_t value[MESSAGE_PART_VALUE_BYTES_MAX];
    size_t size;
    if (!message_part_row(part, value, &size)) return ERROR_NONE;
    Key key = key_part(session, (uint8_t)part->kind_case, message, (uint16_t)index);
    return txn_put(txn, TABLE_PARTS, &key, slice(value, size));
}

Error message_parts_delete_kind(Txn *txn, Ulid session, Ulid message, uint8_t kind)
{
    Key first = key_part(session, kind, message, 0);
    Slice prefix = {first.bytes, KEY_PART_BYTES - 2};
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_PARTS, &cursor);
    if (error) return error;
    for (;;) {
        KvRow row;
        bool found;
        error = kv_seek(cursor, key_slice(&first), &found, &row);
        if (error || !found || row.key.size != KEY_PART_BYTES) return error;
        if (!slice_starts_with(row.key, prefix)) return ERROR_NONE;
        Key key = {.size = 0};
        key_add(&key, row.key.bytes, row.key.size);
        error = txn_delete(txn, TABLE_PARTS, &key);
        if (error) return error;
    }
}

Error message_parts_delete(Txn *txn, Ulid session, Ulid message)
{
    for (size_t i = 0; i < sizeof(INDEXED_KINDS); i++) {
        Error error = message_parts_delete_kind(txn, session, message, INDEXED_KINDS[i]);
        if (error) return error;
    }
    return ERROR_NONE;
}
