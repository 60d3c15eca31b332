// The tree stands on the reader of messages' JSON: texts and numbers are its.

#include "json_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"
#include "text/json_write.h"

static JsonNode *read_value(JsonReader *reader);

static void require(bool condition, const JsonReader *reader, const char *what)
{
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, reader->detail->text);
    exit(2);
}

JsonNode *json_tree_read(Slice text)
{
    ErrorDetail detail = {{0}};
    JsonReader reader;
    Error error = json_reader_begin(&reader, text, &detail);
    require(!error, &reader, "no UTF-8");
    JsonNode *node = read_value(&reader);
    require(json_scan_peek(&reader.scan) == '\0', &reader, "something follows the JSON");
    return node;
}

// The elements or members up to the closing bracket.
static void read_children(JsonReader *reader, JsonNode *node, char closing)
{
    JsonNode **last = &node->first;
    bool is_end = json_scan_take(&reader->scan, closing);
    while (!is_end) {
        char *name = NULL;
        size_t size;
        if (closing == '}') {
            Error error = json_reader_string(reader, &name, &size);
            require(!error && json_scan_take(&reader->scan, ':'), reader, "no member");
        }
        *last = read_value(reader);
        (*last)->name = name;
        last = &(*last)->next;
        Error error = json_reader_next(reader, closing, &is_end);
        require(!error, reader, "no JSON");
    }
}

static JsonNode *read_value(JsonReader *reader)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    JsonNode *node = calloc(1, sizeof(JsonNode));
    assert(node);
    if (json_scan_take(&reader->scan, '{')) {
        node->kind = JSON_OBJECT;
        read_children(reader, node, '}');
        return node;
    }
    if (json_scan_take(&reader->scan, '[')) {
        node->kind = JSON_LIST;
        read_children(reader, node, ']');
        return node;
    }
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++) {
        if (!json_scan_take_word(&reader->scan, WORDS[i])) continue;
        node->text = strdup(WORDS[i]);
        return node;
    }
    Slice number = {NULL, 0};
    size_t size;
    bool is_text = json_scan_peek(&reader->scan) == '"';
    node->kind = is_text ? JSON_TEXT : JSON_NUMBER;
    Error error = is_text ? json_reader_string(reader, &node->text, &size)
                          : json_reader_number(reader, &number);
    require(!error, reader, "no JSON");
    if (!is_text) node->text = strndup((const char *)number.bytes, number.size);
    return node;
}

void json_tree_free(JsonNode *node)
{
    while (node) {
        JsonNode *next = node->next;
        json_tree_free(node->first);
        free(node->name);
        free(node->text);
        free(node);
        node = next;
    }
}

static JsonNode *child_named(JsonNode *node, const char *name, size_t size)
{
    size_t index = 0;
    for (JsonNode *child = node->first; child; child = child->next, index++) {
        char number[24];
        snprintf(number, sizeof(number), "%zu", index);
        const char *own = child->name ? child->name : number;
        if (strlen(own) == size && memcmp(own, name, size) == 0) return child;
    }
    return NULL;
}

JsonNode *json_tree_at(JsonNode *node, const char *path)
{
    while (node && *path) {
        size_t size = strcspn(path, ".");
        node = child_named(node, path, size);
        path += size + (path[size] == '.');
    }
    return node;
}

const char *json_tree_text(JsonNode *node, const char *path, const char *otherwise)
{
    JsonNode *found = json_tree_at(node, path);
    return found && found->text ? found->text : otherwise;
}

void json_tree_write(FILE *out, const JsonNode *node, char *(*expand)(const char *text))
{
    if (node->kind == JSON_TEXT) {
        char *text = expand(node->text);
        json_write_text(out, slice_of(text));
        free(text);
    } else if (node->text) {
        fputs(node->text, out);
    } else {
        bool is_object = node->kind == JSON_OBJECT;
        fputc(is_object ? '{' : '[', out);
        for (const JsonNode *child = node->first; child; child = child->next) {
            if (child != node->first) fputc(',', out);
            if (is_object) {
                json_write_text(out, slice_of(child->name));
                fputc(':', out);
            }
            json_tree_write(out, child, expand);
        }
        fputc(is_object ? '}' : ']', out);
    }
}
