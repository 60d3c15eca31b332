// The truth: reads with every method that returns what was stored.

#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "harness.h"
#include "tine_calls.h"
#include "wire/wire.h"

enum { READS_MAX = 16384, ITEMS_MAX = 65536, PAGES_MAX = 1000, ID_BYTES = 32 };

typedef struct Method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    const char *id_field; // NULL: it reads the whole store
    bool is_list;         // field 1 has the items, and field 2 may be the cursor
} Method;

enum { SESSIONS, SESSION, HISTORY, ENTRIES, MARKERS, MEMORIES, TODOS, CALLS, EVENTS, MESSAGE };

#define REQUEST(name) &tine__v1__##name##_request__descriptor
static const Method METHODS[] = {
    [SESSIONS] = {TINE_METHOD_LIST_SESSIONS, REQUEST(list_sessions), NULL, true},
    [SESSION] = {TINE_METHOD_GET_SESSION, REQUEST(get_session), "session_id", false},
    [HISTORY] = {TINE_METHOD_MESSAGES_FOR_SESSION, REQUEST(messages_for_session), "session_id",
                 true},
    [ENTRIES] = {TINE_METHOD_LIST_MESSAGES, REQUEST(list_messages), "session_id", true},
    [MARKERS] = {TINE_METHOD_LIST_MARKERS_FOR_SESSION, REQUEST(list_markers_for_session),
                 "session_id", true},
    [MEMORIES] = {TINE_METHOD_LIST_SESSION_MEMORIES, REQUEST(list_session_memories), "session_id",
                  true},
    [TODOS] = {TINE_METHOD_GET_SESSION_TODOS, REQUEST(get_session_todos), "session_id", false},
    [CALLS] = {TINE_METHOD_LIST_CALLS, REQUEST(list_calls), "session_id", true},
    [EVENTS] = {TINE_METHOD_LIST_EVENTS, REQUEST(list_events), NULL, true},
    [MESSAGE] = {TINE_METHOD_GET_MESSAGE, REQUEST(get_message), "message_id", false},
};

typedef struct Read {
    int method;
    char id[ID_BYTES];
    size_t first_item, item_count; // of Truth.items
} Read;

struct Truth {
    Read reads[READS_MAX];
    size_t read_count;
    Hash items[ITEMS_MAX]; // of each read, sorted
    size_t item_count;
    Hash all[ITEMS_MAX]; // sorted
};

typedef struct Answer {
    int code;
    Hash items[ITEMS_MAX];
    size_t count;
} Answer;

typedef union Request { // of any method
    ProtobufCMessage base;
    uint8_t bytes[512];
} Request;

static void *field_of(Request *request, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->base.descriptor, name);
    return field ? request->bytes + field->offset : NULL;
}

static void set_text(Request *request, const char *name, const char *text)
{
    char **field = field_of(request, name);
    CHECK(field != NULL);
    *field = (char *)(uintptr_t)text;
}

static void set_number(Request *request, const char *name, uint32_t value)
{
    uint32_t *field = field_of(request, name);
    if (field) *field = value;
}

static void request_make(Request *request, const Read *read, const char *cursor)
{
    const Method *method = &METHODS[read->method];
    CHECK(method->request->sizeof_message <= sizeof(*request));
    protobuf_c_message_init(method->request, request->bytes);
    if (method->id_field) set_text(request, method->id_field, read->id);
    if (read->method == MESSAGE)
        ((Tine__V1__GetMessageRequest *)request->bytes)->by_case =
            TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    if (*cursor) set_text(request, "cursor", cursor);
    set_number(request, "page_bytes", PAGE_BYTES_MAX);
    set_number(request, "limit",
               read->method == SESSIONS ? SESSION_LIST_LIMIT_MAX : LIST_LIMIT_MAX);
}

static void take_items(const Method *method, Slice rest, Answer *answer, char *cursor)
{
    WireField field;
    *cursor = '\0';
    while (wire_next(&rest, &field)) {
        if (field.type != WIRE_BYTES) continue;
        if (method->is_list && field.number == 2 && field.bytes.size < CURSOR_BYTES_MAX)
            snprintf(cursor, CURSOR_BYTES_MAX, "%.*s", (int)field.bytes.size,
                     (const char *)field.bytes.bytes);
        if (method->is_list && field.number != 1) continue;
        if (answer->count < ITEMS_MAX) answer->items[answer->count++] = hash_bytes(field.bytes);
    }
}

static int hash_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(Hash));
}

// One read, over all its pages.
static void ask(Tine *tine, const Read *read, Answer *answer)
{
    char cursor[CURSOR_BYTES_MAX] = "", next[CURSOR_BYTES_MAX];
    const Method *method = &METHODS[read->method];
    const TineCallOptions options = {.no_retry = true}; // a server that died does not come back
    answer->count = 0;
    for (int page = 0; page < PAGES_MAX; page++) {
        Request request;
        TineBytes reply = {.memory = NULL};
        request_make(&request, read, cursor);
        answer->code = tine_call_bytes(tine, &options, method->path, &request.base, &reply);
        if (!answer->code) take_items(method, slice(reply.bytes, reply.size), answer, next);
        tine_bytes_free(&reply);
        if (answer->code || !*next || read->method == EVENTS) break;
        memcpy(cursor, next, sizeof(cursor));
    }
    qsort(answer->items, answer->count, sizeof(Hash), hash_compare);
}

static void note(Truth *truth, Answer *answer, Tine *tine, int method, const char *id)
{
    CHECK(truth->read_count < READS_MAX);
    Read *read = &truth->reads[truth->read_count++];
    *read = (Read){.method = method, .first_item = truth->item_count};
    snprintf(read->id, sizeof(read->id), "%s", id);
    ask(tine, read, answer);
    CHECK_EQ(answer->code, 0);
    read->item_count = answer->count;
    CHECK(truth->item_count + answer->count <= ITEMS_MAX);
    memcpy(&truth->items[truth->item_count], answer->items, answer->count * sizeof(Hash));
    truth->item_count += answer->count;
}

static void note_session(Truth *truth, Answer *answer, Tine *tine, const char *session)
{
    for (int method = SESSION; method <= CALLS; method++)
        note(truth, answer, tine, method, session);
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    Tine__V1__MessagesForSessionResponse *response;
    request.session_id = (char *)(uintptr_t)session;
    request.page_bytes = PAGE_BYTES_MAX;
    CHECK_EQ(tine_messages_for_session(tine, NULL, &request, &response), 0);
    for (size_t i = 0; i < response->n_messages; i++)
        note(truth, answer, tine, MESSAGE, response->messages[i]->id);
    tine__v1__messages_for_session_response__free_unpacked(response, NULL);
}

Truth *truth_read(Tine *tine)
{
    Truth *truth = calloc(1, sizeof(*truth));
    Answer *answer = calloc(1, sizeof(*answer));
    CHECK(truth && answer);
    note(truth, answer, tine, SESSIONS, "");
    note(truth, answer, tine, EVENTS, "");
    Tine__V1__ListSessionsRequest request = TINE__V1__LIST_SESSIONS_REQUEST__INIT;
    Tine__V1__ListSessionsResponse *response;
    request.limit = SESSION_LIST_LIMIT_MAX;
    request.page_bytes = PAGE_BYTES_MAX;
    CHECK_EQ(tine_list_sessions(tine, NULL, &request, &response), 0);
    for (size_t i = 0; i < response->n_sessions; i++)
        note_session(truth, answer, tine, response->sessions[i]->id);
    tine__v1__list_sessions_response__free_unpacked(response, NULL);
    memcpy(truth->all, truth->items, sizeof(truth->all));
    qsort(truth->all, truth->item_count, sizeof(Hash), hash_compare);
    free(answer);
    return truth;
}

void truth_free(Truth *truth)
{
    free(truth);
}

static bool is_in(const Hash *item, const Hash *items, size_t count)
{
    return bsearch(item, items, count, sizeof(Hash), hash_compare) != NULL;
}

static void compare(const Truth *truth, const Read *read, const Answer *answer,
                    volatile Difference *out)
{
    if (answer->code == STATUS_NOT_FOUND) {
        out->replies++;
        out->absent++;
        return;
    }
    if (answer->code) {
        out->refused++;
        return;
    }
    out->replies++;
    const Hash *known = &truth->items[read->first_item];
    size_t right = 0;
    for (size_t i = 0; i < answer->count; i++) {
        const Hash *item = &answer->items[i];
        if (is_in(item, known, read->item_count))
            right++;
        else if (is_in(item, truth->all, truth->item_count))
            out->misplaced++;
        else
            out->altered++;
    }
    if (right < read->item_count) out->absent += read->item_count - right;
}

void truth_compare(const Truth *truth, Tine *tine, volatile Difference *out)
{
    Answer *answer = calloc(1, sizeof(*answer));
    CHECK(answer != NULL);
    for (size_t i = 0; i < truth->read_count; i++) {
        ask(tine, &truth->reads[i], answer);
        compare(truth, &truth->reads[i], answer, out);
    }
    free(answer);
}
