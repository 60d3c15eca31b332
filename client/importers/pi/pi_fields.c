// Taking members of an object.

#include "importers/pi/pi_fields.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "importers/pi/pi_json.h"
#include "text/utf8.h"

static char EMPTY[] = "";

Error pi_fields_read(PiFields *fields, const char *const *names, size_t count, Slice object)
{
    assert(count <= PI_FIELD_COUNT_MAX);
    *fields = (PiFields){.names = names, .count = count};
    return pi_members(object, names, count, fields->values, &fields->rest);
}

void pi_fields_free(PiFields *fields)
{
    buffer_free(&fields->rest);
}

char *pi_fields_text(PiFields *fields, size_t field, Arena *arena)
{
    if (!pi_is_text(fields->values[field])) return EMPTY;
    fields->is_used[field] = true;
    char *text = pi_text(arena, fields->values[field]);
    if (!text) return NULL;
    size_t size = utf8_cut(slice_of(text), SUMMARY_BYTES_MAX).size;
    if (text[size]) text[size] = '\0';
    return text;
}

char *pi_fields_name(PiFields *fields, size_t field, Arena *arena)
{
    return pi_name(arena, pi_fields_text(fields, field, arena));
}

char *pi_fields_json(PiFields *fields, size_t field, size_t bytes_max, Arena *arena)
{
    Slice value = fields->values[field];
    if (value.size == 0 || value.size > bytes_max) return EMPTY;
    char *json = pi_raw(arena, value);
    fields->is_used[field] = json && *json;
    return json;
}

Error pi_fields_keep_unused(PiFields *fields)
{
    Buffer *rest = &fields->rest;
    Error error = ERROR_NONE;
    for (size_t i = 0; i < fields->count && !error; i++) {
        if (fields->is_used[i] || fields->values[i].size == 0) continue;
        if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
        if (!error) error = buffer_append(rest, slice_of("\""));
        if (!error) error = buffer_append(rest, slice_of(fields->names[i]));
        if (!error) error = buffer_append(rest, slice_of("\":"));
        if (!error) error = buffer_append(rest, fields->values[i]);
    }
    return error;
}

char *pi_name(Arena *arena, char *text)
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
