// Fitting foreign text into fields.

#include "importers/field.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "text/json.h"
#include "text/utf8.h"

char *field_text(Arena *arena, Slice text)
{
    if (utf8_is_valid(text)) return arena_string(arena, text);
    char *out = arena_alloc(arena, UTF8_REPLACEMENT_BYTES * text.size + 1);
    if (out) out[utf8_mend(text, out)] = '\0';
    return out;
}

char *field_json(Arena *arena, Slice value)
{
    static char empty[] = "";
    char *text = field_text(arena, value);
    return !text || json_is_valid(slice_of(text), NULL) ? text : empty;
}

char *field_name(Arena *arena, char *text)
{
    enum { HASH_TEXT_BYTES = 2 * HASH_BYTES + 1 };
    if (!text || strlen(text) <= STRING_BYTES_MAX) return text;
    Hash hash = hash_bytes(slice_of(text));
    Slice kept = utf8_cut(slice_of(text), STRING_BYTES_MAX - HASH_TEXT_BYTES);
    char *out = arena_alloc(arena, STRING_BYTES_MAX + 1);
    if (!out) return NULL;
    memcpy(out, text, kept.size);
    out[kept.size] = '~';
    for (size_t i = 0; i < HASH_BYTES; i++) {
        snprintf(out + kept.size + 1 + 2 * i, 3, "%02x", hash.bytes[i]);
    }
    return out;
}
