// Taking members of an object, one by one.

#include "importers/members.h"

#include <assert.h>
#include <string.h>

#include "importers/field.h"
#include "text/json_walk.h"
#include "text/utf8.h"

static char EMPTY[] = "";

Error members_read(Members *members, const char *const *names, size_t count, Slice object)
{
    assert(count <= MEMBER_COUNT_MAX);
    *members = (Members){.names = names, .count = count};
    return json_members(object, names, count, members->values, &members->rest);
}

void members_free(Members *members)
{
    buffer_free(&members->rest);
}

char *members_text(Members *members, size_t member, size_t bytes_max, Arena *arena)
{
    Slice value = members->values[member];
    if (!json_is_text(value)) return EMPTY;
    char *text = json_text(arena, value);
    if (!text) return NULL;
    size_t size = utf8_cut(slice_of(text), bytes_max).size;
    members->is_used[member] = !text[size] || value.size > MEMBER_KEPT_BYTES_MAX;
    if (text[size]) text[size] = '\0';
    return text;
}

char *members_name(Members *members, size_t member, Arena *arena)
{
    if (!json_is_text(members->values[member])) return EMPTY;
    members->is_used[member] = true;
    return field_name(arena, json_text(arena, members->values[member]));
}

char *members_json(Members *members, size_t member, size_t bytes_max, Arena *arena)
{
    Slice value = members->values[member];
    if (value.size == 0 || value.size > bytes_max) return EMPTY;
    char *json = field_json(arena, value);
    members->is_used[member] = json && *json;
    return json;
}

Error members_keep_unused(Members *members)
{
    Buffer *rest = &members->rest;
    Error error = ERROR_NONE;
    for (size_t i = 0; i < members->count && !error; i++) {
        if (members->is_used[i] || members->values[i].size == 0) continue;
        if (buffer_size(rest) > 0) error = buffer_append(rest, slice_of(","));
        if (!error) error = buffer_append(rest, slice_of("\""));
        if (!error) error = buffer_append(rest, slice_of(members->names[i]));
        if (!error) error = buffer_append(rest, slice_of("\":"));
        if (!error) error = buffer_append(rest, members->values[i]);
    }
    return error;
}
