// The parts of an entry as the reference's JSON: an array of objects with the keys type, text, id,
// name, input, tool_use_id, content. Written by hand, read by cJSON into an arena (json_arena.h).

#pragma once

#include <cjson/cJSON.h>

#include "system.h"

typedef struct JsonText {
    char *text; // owned; ends with a NUL
    size_t size, capacity;
} JsonText;

void json_text_add(JsonText *json, const char *text, size_t size);
void json_text_add_string(JsonText *json, const char *text, size_t size); // quoted and escaped
void json_text_free(JsonText *json);

void json_parts_write(JsonText *json, const Entry *entry); // appends
// Decodes an array of parts: checks each kind's required members, and adds the texts' sizes. The
// first text that is not empty goes into `preview` (may be NULL), cut to 160 bytes.
void json_parts_read(const char *json, size_t size, Tally *tally, char *preview);
void json_parts_tally(const cJSON *parts, Tally *tally, char *preview);

enum { PREVIEW_BYTES = 161 };

const char *entry_role(const Entry *entry); // "user", "assistant" or "tool"
