// JSON as a tree, for files that are not a message of the contract.

#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/slice.h"

typedef enum JsonKind { JSON_WORD, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT } JsonKind;

// Owns its name, its text and what is below it. A word is true, false or null.
typedef struct JsonNode {
    JsonKind kind;
    char *name; // of a member; NULL in a list
    char *text; // decoded; numbers and words as they stand
    struct JsonNode *first, *next;
} JsonNode;

// A text that is no JSON ends the program, and says where it is not.
JsonNode *json_tree_read(Slice text);
void json_tree_free(JsonNode *node); // NULL is allowed

// What a path like "messages.0.id" leads to; NULL: nothing is there.
JsonNode *json_tree_at(JsonNode *node, const char *path);

// The text or number there; `otherwise` if there is none.
const char *json_tree_text(JsonNode *node, const char *path, const char *otherwise);

// Writes it as JSON; each text goes through `expand` first, whose result is freed.
void json_tree_write(FILE *out, const JsonNode *node, char *(*expand)(const char *text));
