// The tree stands on the reader of messages' JSON: texts and numbers are its.

#include "json_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_scan.h"

static JsonNode *read_value(JsonScan *scan);

static void require(bool condition, const JsonScan *scan, const char *what)
{
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, scan->detail->text);
    exit(2);
}

JsonNode *json_tree_read(Slice text)
{
    ErrorDetail detail = {{0}};
    JsonScan scan;
    Error error = scan_begin(&scan, text, &detail);
    require(!error, &scan, "no UTF-8");
    JsonNode *node = read_value(&scan);
    require(scan_peek(&scan) == '\0', &scan, "something follows the JSON");
    return node;
}

// The elements or members up to the closing bracket.
static void read_children(JsonScan *scan, JsonNode *node, char closing)
{
    JsonNode **last = &node->first;
    bool is_end = scan_take(scan, closing);
    while (!is_end) {
        char *name = NULL;
        size_t size;
        if (closing == '}') {
            Error error = scan_string(scan, &name, &size);
            require(!error && scan_take(scan, ':'), scan, "no member");
        }
        *last = read_value(scan);
        (*last)->name = name;
        last = &(*last)->next;
        Error error = scan_next(scan, closing, &is_end);
        require(!error, scan, "no JSON");
    }
}

static JsonNode *read_value(JsonScan *scan)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    JsonNode *node = calloc(1, sizeof(JsonNode));
    assert(node);
    if (scan_take(scan, '{')) {
        node->kind = JSON_OBJECT;
        read_children(scan, node, '}');
        return node;
    }
    if (scan_take(scan, '[')) {
        node->kind = JSON_LIST;
        read_children(scan, node, ']');
        return node;
    }
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++) {
        if (!scan_take_word(scan, WORDS[i])) continue;
        node->text = strdup(WORDS[i]);
        return node;
    }
    Slice number = {NULL, 0};
    size_t size;
    bool is_text = scan_peek(scan) == '"';
    node->kind = is_text ? JSON_TEXT : JSON_NUMBER;
    Error error = is_text ? scan_string(scan, &node->text, &size) : scan_number(scan, &number);
    require(!error, scan, "no JSON");
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
