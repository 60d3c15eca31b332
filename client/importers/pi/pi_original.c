// Finds the first line that is an entry.

#include "importers/pi/pi_original.h"

#include <string.h>

#include "text/json.h"
#include "text/json_walk.h"

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static bool is_entry(Arena *arena, Slice line, PiOriginal *out)
{
    enum { TYPE, ID, PARENT, COUNT };
    static const char *const NAMES[] = {"type", "id", "parentId"};
    Slice values[COUNT];
    if (!json_is_object(line) || !json_is_well_formed(line)) return false;
    if (json_members(line, NAMES, COUNT, values, NULL)) return false;
    const char *type = json_text(arena, values[TYPE]);
    out->id = json_text(arena, values[ID]);
    out->parent_id = json_text(arena, values[PARENT]);
    return type && strcmp(type, "session") != 0 && out->id && out->parent_id;
}

bool pi_original_read(Arena *arena, Slice bytes, PiOriginal *out)
{
    for (size_t at = 0; at < bytes.size;) {
        const uint8_t *end = memchr(bytes.bytes + at, '\n', bytes.size - at);
        size_t next = end ? (size_t)(end - bytes.bytes) + 1 : bytes.size;
        size_t start = at, stop = end ? next - 1 : next;
        while (start < stop && is_space(bytes.bytes[start]))
            start++;
        while (stop > start && is_space(bytes.bytes[stop - 1]))
            stop--;
        out->line = slice(bytes.bytes + start, stop - start);
        if (is_entry(arena, out->line, out)) {
            out->before = slice(bytes.bytes, start);
            out->after = slice(bytes.bytes + stop, bytes.size - stop);
            return true;
        }
        at = next;
    }
    return false;
}
