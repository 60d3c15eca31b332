// Check of keys: describes the shape of each table's keys as a string with one letter per part. The
// shapes are used to recognize damaged keys, to find IDs in keys, and to print keys.

#include <stdio.h>

#include "base/limits.h"
#include "store/check_pass.h"

// i: an issued ID; h: a hash; r: a byte; x: a u16; s: a u64; c: the chunk number, a u16; o: an
// operation ID and a 0; n: a name.
static const char *const SHAPES[TABLE_COUNT] = {
    [TABLE_SESSIONS] = "irc",
    [TABLE_MESSAGES] = "iic",
    [TABLE_MESSAGE_OWNER] = "i",
    [TABLE_MARKERS] = "iri",
    [TABLE_ORIGINS] = "ii",
    [TABLE_READERS] = "ii",
    [TABLE_MEMORIES] = "iic",
    [TABLE_CALLS] = "iic",
    [TABLE_TODOS] = "ic",
    [TABLE_CHILDREN] = "ii",
    [TABLE_SESSION_INDEX] = "rhi",
    [TABLE_BY_ACTIVE] = "si",
    [TABLE_MESSAGE_EXTERNAL] = "hi",
    [TABLE_PARTS] = "irix",
    [TABLE_OPERATIONS] = "oc",
    [TABLE_OPERATIONS_BY_AGE] = "s",
    [TABLE_ORIGINALS] = "iic",
    [TABLE_EVENTS] = "sc",
    [TABLE_META] = "n",
};

// Returns the size of the part at the front of `rest`. 0: the key is too short for it.
static size_t part_size(char part, Slice rest)
{
    size_t size = 0;
    switch (part) {
    case 'i':
    case 'h': size = 16; break;
    case 's': size = 8; break;
    case 'x':
    case 'c': size = 2; break;
    case 'r': size = 1; break;
    case 'o': {
        const uint8_t *end = rest.size ? memchr(rest.bytes, 0, rest.size) : NULL;
        size = end ? (size_t)(end - rest.bytes) + 1 : 0;
        if (size > OPERATION_ID_BYTES_MAX + 1) size = 0;
        break;
    }
    default: size = rest.size; break;
    }
    return size <= rest.size ? size : 0;
}

bool check_table_is_chunked(StoreTable table)
{
    const char *shape = SHAPES[table];
    return shape[strlen(shape) - 1] == 'c';
}

bool check_table_is_of_sessions(StoreTable table)
{
    return SHAPES[table][0] == 'i' && table != TABLE_MESSAGE_OWNER;
}

// Takes part number `index` from the front of `rest`. Returns false if there is no such part, in
// which case `*out_part` is 0, or if the key is too short for it.
static bool next_part(StoreTable table, size_t index, Slice *rest, char *out_part, Slice *out)
{
    *out_part = SHAPES[table][index];
    if (*out_part == '\0') return false;
    size_t size = part_size(*out_part, *rest);
    *out = slice(rest->bytes, size);
    *rest = slice_skip(*rest, size);
    return size > 0;
}

bool check_key_is_valid(StoreTable table, Slice key)
{
    Slice rest = key, bytes;
    char part;
    size_t index = 0;
    while (next_part(table, index, &rest, &part, &bytes))
        index++;
    return part == '\0' && rest.size == 0;
}

Ulid check_key_newest_id(StoreTable table, Slice key)
{
    Ulid newest = ULID_ZERO;
    Slice rest = key, bytes;
    char part;
    for (size_t i = 0; next_part(table, i, &rest, &part, &bytes); i++) {
        if (part != 'i') continue;
        Ulid id = key_id_at(bytes, 0);
        if (ulid_compare(id, newest) > 0) newest = id;
    }
    return newest;
}

static void part_text(char part, Slice bytes, char *out, size_t size)
{
    char id[ULID_TEXT_BYTES + 1];
    switch (part) {
    case 'i':
        ulid_format(key_id_at(bytes, 0), id);
        snprintf(out, size, "%s", id);
        break;
    case 's': snprintf(out, size, "%llu", (unsigned long long)bytes_get_u64(bytes.bytes)); break;
    case 'x':
    case 'c': snprintf(out, size, "%u", (unsigned)key_u16_at(bytes, 0)); break;
    case 'r': snprintf(out, size, "%u", (unsigned)bytes.bytes[0]); break;
    case 'o': snprintf(out, size, "%.*s", (int)bytes.size - 1, (const char *)bytes.bytes); break;
    case 'n': snprintf(out, size, "%.*s", (int)bytes.size, (const char *)bytes.bytes); break;
    default:
        for (size_t i = 0; i < bytes.size && 2 * i + 2 < size; i++) {
            snprintf(out + 2 * i, size - 2 * i, "%02x", bytes.bytes[i]);
        }
        break;
    }
}

void check_key_text(StoreTable table, Slice key, char out[CHECK_KEY_TEXT_BYTES_MAX])
{
    out[0] = '\0';
    size_t used = 0;
    Slice rest = key, bytes;
    char part;
    for (size_t i = 0; next_part(table, i, &rest, &part, &bytes); i++) {
        if (used > 0) out[used++] = '/';
        part_text(part, bytes, out + used, CHECK_KEY_TEXT_BYTES_MAX - used - 1);
        used += strlen(out + used);
    }
    if (rest.size == 0) return;
    if (used > 0) out[used++] = '+';
    part_text('?', rest, out + used, CHECK_KEY_TEXT_BYTES_MAX - used - 1);
}
