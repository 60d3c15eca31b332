// Parts as JSON.

#include "json_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "json_arena.h"

void json_text_add(JsonText *json, const char *text, size_t size)
{
    if (json->size + size + 1 > json->capacity) {
        json->capacity = 2 * (json->size + size + 1);
        json->text = realloc(json->text, json->capacity);
        require(json->text != NULL, "out of memory");
    }
    memcpy(json->text + json->size, text, size);
    json->size += size;
    json->text[json->size] = '\0';
}

static void add_constant(JsonText *json, const char *text)
{
    json_text_add(json, text, strlen(text));
}

// Runs of bytes that need no escape are copied whole.
void json_text_add_string(JsonText *json, const char *text, size_t size)
{
    const char *run = text, *end = text + size;
    add_constant(json, "\"");
    for (const char *at = text; at < end; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
        json_text_add(json, run, (size_t)(at - run));
        run = at + 1;
        char escape[8] = {'\\', (char)byte, '\0'};
        if (byte == '\n') escape[1] = 'n';
        if (byte == '\t') escape[1] = 't';
        if (byte < 0x20 && byte != '\n' && byte != '\t')
            snprintf(escape, sizeof(escape), "\\u%04x", byte);
        add_constant(json, escape);
    }
    json_text_add(json, run, (size_t)(end - run));
    add_constant(json, "\"");
}

void json_text_free(JsonText *json)
{
    free(json->text);
    *json = (JsonText){.text = NULL};
}

const char *entry_role(const Entry *entry)
{
    static const char *const roles[] = {"user", "assistant", "tool"};
    return roles[entry->kind];
}

void json_parts_write(JsonText *json, const Entry *entry)
{
    if (entry->kind == ENTRY_TOOL) {
        add_constant(json,
                     "[{\"type\":\"tool_result\",\"tool_use_id\":\"" TOOL_USE_ID "\",\"content\":");
        json_text_add_string(json, entry->text, entry->text_bytes);
        add_constant(json, "}]");
        return;
    }
    add_constant(json, "[{\"type\":\"text\",\"text\":");
    json_text_add_string(json, entry->text, entry->text_bytes);
    add_constant(json, entry->kind == ENTRY_USER ? "}]"
                                                 : "},{\"type\":\"tool_use\",\"id\":\"" TOOL_USE_ID
                                                   "\",\"name\":\"" TOOL_NAME
                                                   "\",\"input\":" TOOL_INPUT "}]");
}

static const char *member(const cJSON *part, const char *name)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, name));
    require(value != NULL, "a part without %s", name);
    return value;
}

void json_parts_tally(const cJSON *parts, Tally *tally, char *preview)
{
    const cJSON *part;
    cJSON_ArrayForEach(part, parts)
    {
        const char *type = member(part, "type");
        if (strcmp(type, "text") == 0) {
            const char *text = member(part, "text");
            tally->text_bytes += strlen(text);
            if (preview && !*preview) snprintf(preview, PREVIEW_BYTES, "%s", text);
        } else if (strcmp(type, "tool_result") == 0) {
            (void)member(part, "tool_use_id");
            tally->text_bytes += strlen(member(part, "content"));
        } else {
            (void)member(part, "id");
            (void)member(part, "name");
        }
    }
    tally->messages++;
}

void json_parts_read(const char *json, size_t size, Tally *tally, char *preview)
{
    const cJSON *parts = json_arena_parse(json, size);
    require(parts != NULL, "parts that are no JSON");
    json_parts_tally(parts, tally, preview);
}
