// wire_scenario: runs the steps of tests/wire/scenario.json through libtine, prints a transcript.
//
//     wire_scenario --url ipc://SOCKET --peer ipc://SOCKET scenario.json > transcript
//
// One line a step. tests/wire/transcripts compares it with those of the other languages' clients.

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "file_read.h"
#include "json_message.h"
#include "json_tree.h"
#include "method.h"
#include "proto_json.h"
#include "text/json_write.h"
#include "tine.h"
#include "tine/v1/store.pb-c.h"

enum { SAVED_MAX = 256, WATCH_MS_MAX = 3600 * 1000, NAME_BYTES_MAX = 128 };

typedef struct Saved {
    char *name, *value; // owned
} Saved;

static Saved saved[SAVED_MAX];
static size_t saved_count;

static void steps_run(JsonNode *steps, const char *url, const char *peer_url);
static void step_run(JsonNode *step, const char *id, const char *url, Tine *tine);
static int call(JsonNode *step, Tine *tine, const ProtobufCMethodDescriptor *method,
                const TineCallOptions *options, char **out_reply);
static int watch(const Tine__V1__WatchEventsRequest *request, Tine *tine, int count,
                 TineStatus *status, char **out_reply);

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "wire_scenario: %s: %s\n", what, why);
    exit(2);
}

static void save(const char *name, const char *value)
{
    size_t i = 0;
    while (i < saved_count && strcmp(saved[i].name, name) != 0)
        i++;
    if (i == SAVED_MAX) fail(name, "too much is saved");
    if (i == saved_count) saved[saved_count++].name = strdup(name);
    free(saved[i].value);
    saved[i].value = strdup(value);
}

// A text with the saved values in the place of their names.
static char *expand(const char *text)
{
    char *expanded = NULL;
    size_t size;
    FILE *out = open_memstream(&expanded, &size);
    assert(out);
    while (*text) {
        const char *end = text[0] == '$' && text[1] == '{' ? strchr(text, '}') : NULL;
        if (!end) {
            fputc(*text++, out);
            continue;
        }
        const char *value = NULL;
        for (size_t i = 0; i < saved_count; i++) {
            size_t length = (size_t)(end - text - 2);
            bool is_it =
                strlen(saved[i].name) == length && strncmp(saved[i].name, text + 2, length) == 0;
            if (is_it) value = saved[i].value;
        }
        if (!value) fail(text, "no step has saved this");
        fputs(value, out);
        text = end + 1;
    }
    fclose(out);
    return expanded;
}

int main(int argument_count, char **arguments)
{
    const char *url = NULL, *peer_url = NULL;
    for (int i = 1; i + 1 < argument_count; i += 2) {
        if (strcmp(arguments[i], "--url") == 0) url = arguments[i + 1];
        if (strcmp(arguments[i], "--peer") == 0) peer_url = arguments[i + 1];
    }
    if (!url || !peer_url || argument_count != 6) {
        fprintf(stderr, "usage: wire_scenario --url URL --peer URL SCENARIO.json\n");
        return 2;
    }
    Buffer file = {.bytes = NULL};
    if (file_read(arguments[5], JSON_TEXT_BYTES_MAX, &file)) return 2;
    JsonNode *steps = json_tree_read(buffer_slice(&file));
    steps_run(steps, url, peer_url);
    json_tree_free(steps);
    buffer_free(&file);
    for (size_t i = 0; i < saved_count; i++) {
        free(saved[i].name);
        free(saved[i].value);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static Tine *open_or_fail(const char *url, const char *token)
{
    TineStatus status;
    TineOpenOptions options = {.token = token};
    Tine *tine;
    if (tine_open_with(url, &options, &status, &tine)) fail(url, status.message);
    return tine;
}

static void steps_run(JsonNode *steps, const char *url, const char *peer_url)
{
    Tine *tine = open_or_fail(url, NULL), *peer = open_or_fail(peer_url, NULL);
    for (JsonNode *step = steps->first; step; step = step->next) {
        bool is_peer = strcmp(json_tree_text(step, "via", ""), "peer") == 0;
        const char *step_url = is_peer ? peer_url : url;
        const char *id = json_tree_text(step, "id", "");
        const char *index_name = json_tree_text(step, "repeat.name", NULL);
        int count = atoi(json_tree_text(step, "repeat.count", "1"));
        for (int i = 0; i < count; i++) {
            char name[NAME_BYTES_MAX], index[16];
            snprintf(index, sizeof(index), "%d", i);
            snprintf(name, sizeof(name), index_name ? "%s/%s" : "%s", id, index);
            if (index_name) save(index_name, index);
            step_run(step, name, step_url, is_peer ? peer : tine);
        }
    }
    tine_close(peer);
    tine_close(tine);
}

// Puts a long text where the step says.
static void generate(JsonNode *step)
{
    const char *field = json_tree_text(step, "generate.field", NULL);
    if (!field) return;
    JsonNode *node = json_tree_at(json_tree_at(step, "request"), field);
    if (!node || node->kind != JSON_TEXT) fail(field, "the request has no such text");
    size_t count = strtoul(json_tree_text(step, "generate.count", "0"), NULL, 10);
    free(node->text);
    node->text = malloc(count + 1);
    assert(node->text);
    memset(node->text, json_tree_text(step, "generate.byte", "a")[0], count);
    node->text[count] = '\0';
}

static void results_save(JsonNode *step, const char *reply)
{
    JsonNode *names = json_tree_at(step, "save");
    if (!names) return;
    JsonNode *tree = json_tree_read(slice_of(reply));
    for (JsonNode *name = names->first; name; name = name->next) {
        const char *value = json_tree_text(tree, name->text, NULL);
        if (!value) fail(name->text, "the reply has no such field");
        save(name->name, value);
    }
    json_tree_free(tree);
}

static void step_run(JsonNode *step, const char *id, const char *url, Tine *tine)
{
    const char *name = json_tree_text(step, "call", "");
    const ProtobufCMethodDescriptor *method = method_find_or_say(name);
    if (!method) exit(2);
    if (json_tree_at(step, "cancel_ms")) {
        printf("{\"step\":\"%s\",\"skipped\":\"libtine cannot cancel a call\"}\n", id);
        return;
    }
    const char *token = json_tree_text(step, "token", NULL);
    const char *operation_id = json_tree_text(step, "operation_id", NULL);
    char *expanded_id = operation_id ? expand(operation_id) : NULL;
    TineStatus status;
    TineCallOptions options = {
        .operation_id = expanded_id,
        .timeout_ms = strtoll(json_tree_text(step, "timeout_ms", "0"), NULL, 10),
        .traceparent = json_tree_text(step, "traceparent", NULL),
        .out_status = &status,
        .no_retry = true, // as with the others
    };
    generate(step);
    Tine *own = token ? open_or_fail(url, token) : NULL;
    char *reply = NULL;
    int code = call(step, own ? own : tine, method, &options, &reply);
    tine_close(own);
    printf("{\"step\":\"%s\",\"call\":\"%s\",\"code\":%d,\"reason\":", id, method->name, code);
    json_write_text(stdout, slice_of(status.reason));
    fputs(",\"message\":", stdout);
    json_write_text(stdout, slice_of(status.message));
    printf(",\"reply\":%s}\n", reply ? reply : "null");
    if (reply) results_save(step, reply);
    free(reply);
    free(expanded_id);
}

static ProtobufCMessage *request_read(JsonNode *step, const ProtobufCMethodDescriptor *method)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert(out);
    JsonNode *request = json_tree_at(step, "request");
    if (!request) fail(method->name, "the step has no request");
    json_tree_write(out, request, expand);
    fclose(out);
    ErrorDetail detail = {{0}};
    ProtobufCMessage *message = NULL;
    if (json_message_read(slice(text, size), method->input, &detail, &message))
        fail(text, detail.text);
    free(text);
    return message;
}

static int call(JsonNode *step, Tine *tine, const ProtobufCMethodDescriptor *method,
                const TineCallOptions *options, char **out_reply)
{
    ProtobufCMessage *request = request_read(step, method), *reply = NULL;
    int code;
    if (method->input == &tine__v1__watch_events_request__descriptor) {
        int count = atoi(json_tree_text(step, "watch.events", "1"));
        code = watch((const Tine__V1__WatchEventsRequest *)request, tine, count,
                     options->out_status, out_reply);
    } else {
        char path[METHOD_PATH_BYTES_MAX];
        method_path(method, path);
        code = tine_call(tine, options, path, request, method->output, &reply);
    }
    if (reply) {
        size_t size;
        FILE *out = open_memstream(out_reply, &size);
        assert(out);
        proto_json_write(out, reply);
        fclose(out);
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    protobuf_c_message_free_unpacked(request, NULL);
    return code;
}

static int watch(const Tine__V1__WatchEventsRequest *request, Tine *tine, int count,
                 TineStatus *status, char **out_reply)
{
    TineWatchOptions options = {
        .session_id = request->session_id,
        .type_prefix = request->type_prefix,
        .instance_id = request->instance_id,
        .after_sequence = request->after_sequence,
        // The contract's starts are libtine's, one later: its zero says nothing.
        .start = request->start > 0 ? (TineWatchStart)(request->start - 1) : TINE_WATCH_NEW,
    };
    TineWatch *watching;
    int code = tine_watch(tine, &options, status, &watching);
    if (code) return code;
    size_t size;
    FILE *out = open_memstream(out_reply, &size);
    assert(out);
    fputs("{\"events\":[", out);
    for (int i = 0; i < count && !code; i++) {
        Tine__V1__Event *event = NULL;
        code = tine_watch_next(watching, WATCH_MS_MAX, status, &event);
        if (code) break;
        if (!event) fail("WatchEvents", "no event came");
        if (i > 0) fputc(',', out);
        proto_json_write(out, &event->base);
        tine__v1__event__free_unpacked(event, NULL);
    }
    fputs("]}", out);
    fclose(out);
    tine_watch_close(watching);
    if (!code) return code;
    free(*out_reply);
    *out_reply = NULL;
    return code;
}
