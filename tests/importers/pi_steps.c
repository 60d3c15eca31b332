// Steps of the tests of pi's files.

#include "pi_steps.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_export.h"

PiStore *pi_store_open(void)
{
    PiStore *store = calloc(1, sizeof(*store));
    CHECK(store != NULL);
    Tine *tine = NULL;
    CHECK_EQ(tine_open("embedded::memory:", NULL, &tine), 0);
    importer_init(&store->importer, tine, NULL);
    return store;
}

void pi_store_close(PiStore **store)
{
    tine_close((*store)->importer.tine);
    free(*store);
    *store = NULL;
}

void pi_bytes(PiStore *store, const char *bytes)
{
    size_t size = strlen(bytes);
    CHECK(store->size + size < sizeof(store->text));
    memcpy(store->text + store->size, bytes, size + 1);
    store->size += size;
}

void pi_line(PiStore *store, const char *format, ...)
{
    static char line[64 * 1024];
    va_list arguments;
    va_start(arguments, format);
    CHECK(vsnprintf(line, sizeof(line), format, arguments) < (int)sizeof(line));
    va_end(arguments);
    pi_bytes(store, line);
    pi_bytes(store, "\n");
}

void pi_begin(PiStore *store, const char *id)
{
    store->size = 0;
    pi_line(store,
            "{\"type\":\"session\",\"version\":3,\"id\":\"%s\","
            "\"timestamp\":\"2025-11-20T10:00:00.000Z\",\"cwd\":\"/p\"}",
            id);
}

void pi_import_ok(PiStore *store)
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(fwrite(store->text, 1, store->size, file), store->size);
    rewind(file);
    CHECK_EQ(pi_import(&store->importer, file, "file.jsonl"), STATUS_OK);
    fclose(file);
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    CLEANUP(reply_freep) ListSessionsResponse *reply = NULL;
    request.limit = 1;
    CHECK_EQ(tine_list_sessions(store->importer.tine, NULL, &request, &reply), 0);
    CHECK_EQ(reply->n_sessions, 1);
    snprintf(store->session, sizeof(store->session), "%s", reply->sessions[0]->id);
}

const char *pi_export_text(PiStore *store)
{
    memset(store->exported, 0, sizeof(store->exported));
    FILE *out = fmemopen(store->exported, sizeof(store->exported), "w");
    CHECK(out != NULL);
    atomic_uint_fast64_t bytes_done = 0;
    CHECK_EQ(pi_export(store->importer.tine, &store->importer.call, store->session, out,
                       &bytes_done),
             STATUS_OK);
    fclose(out);
    return store->exported;
}

void pi_export_is_same(PiStore *store)
{
    CHECK_STR(pi_export_text(store), store->text);
}

GetMessageResponse *pi_entry(PiStore *store, const char *id)
{
    External external = EXTERNAL__INIT;
    SessionExternal by = SESSION_EXTERNAL__INIT;
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    GetMessageResponse *reply = NULL;
    external.source = (char *)(uintptr_t) "pi";
    external.id = (char *)(uintptr_t)id;
    by.session_id = store->session;
    by.external = &external;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL;
    request.session_external = &by;
    TineStatus status = {0};
    TineCallOptions options = {.out_status = &status};
    int code = tine_get_message(store->importer.tine, &options, &request, &reply);
    if (code) printf("%s\n", status.message);
    CHECK_EQ(code, 0);
    return reply;
}

GetSessionResponse *pi_session(PiStore *store)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *reply = NULL;
    request.session_id = store->session;
    CHECK_EQ(tine_get_session(store->importer.tine, NULL, &request, &reply), 0);
    return reply;
}

void pi_append_text(PiStore *store, const char *text)
{
    Text content = TEXT__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    NewMessage message = NEW_MESSAGE__INIT;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) AppendMessageResponse *reply = NULL;
    content.text = (char *)(uintptr_t)text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = store->session;
    request.message = &message;
    CHECK_EQ(tine_append_message(store->importer.tine, NULL, &request, &reply), 0);
}

void pi_fork(PiStore *store)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) ForkSessionResponse *reply = NULL;
    request.session_id = store->session;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request.at_head = true;
    CHECK_EQ(tine_fork_session(store->importer.tine, NULL, &request, &reply), 0);
    snprintf(store->session, sizeof(store->session), "%s", reply->session->id);
}

void pi_rewind_to(PiStore *store, const char *id)
{
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) RewindSessionResponse *reply = NULL;
    request.session_id = store->session;
    request.message_id = (char *)(uintptr_t)id;
    CHECK_EQ(tine_rewind_session(store->importer.tine, NULL, &request, &reply), 0);
}

void pi_rewind(PiStore *store, const char *id)
{
    CLEANUP(reply_freep) GetMessageResponse *entry = id ? pi_entry(store, id) : NULL;
    pi_rewind_to(store, entry ? entry->message->id : "");
}

void pi_forget_lines(PiStore *store)
{
    static uint8_t line_end[] = "\n";
    ListMessagesRequest list = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *log = NULL;
    list.session_id = store->session;
    CHECK_EQ(tine_list_messages(store->importer.tine, NULL, &list, &log), 0);
    CHECK_STR(log->next_cursor, "");
    for (size_t i = 0; i < log->n_messages; i++) {
        PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
        CLEANUP(reply_freep) PutOriginalResponse *reply = NULL;
        request.message_id = log->messages[i]->id;
        request.content.data = line_end;
        request.content.len = 1;
        CHECK_EQ(tine_put_original(store->importer.tine, NULL, &request, &reply), 0);
    }
}

static const char *role_of(const Message *message)
{
    if (message->kind == MESSAGE_KIND_BRANCH_SUMMARY) return "branchSummary";
    switch (message->role) {
    case ROLE_USER: return "user";
    case ROLE_ASSISTANT: return "assistant";
    case ROLE_TOOL: return "toolResult";
    case ROLE_SYSTEM: return "system";
    case ROLE_OTHER: return message->other_role;
    case ROLE_UNSPECIFIED:
    default: return "?";
    }
}

static void put_settings(FILE *out, const BuildContextResponse *reply)
{
    const char *thinking = "off";
    for (size_t i = 0; i < reply->n_settings; i++) {
        if (strcmp(reply->settings[i]->subtype, "thinking_level") == 0) {
            thinking = reply->settings[i]->text;
        }
    }
    fprintf(out, "| %s ", thinking);
    if (reply->model) {
        fprintf(out, "%s/%s", reply->model->provider, reply->model->name);
    } else {
        fputs("none", out);
    }
}

static const char *text_of(const Message *message)
{
    if (message->kind == MESSAGE_KIND_BRANCH_SUMMARY) return message->text;
    if (message->n_parts == 0) return "";
    const Part *part = message->parts[0];
    return part->kind_case == PART__KIND_TOOL_RESULT ? part->tool_result->content
                                                     : part->text->text;
}

static void put_message(FILE *out, const Message *message, bool has_texts)
{
    if (has_texts) {
        fprintf(out, "%s=%s@%lld ", role_of(message), text_of(message),
                (long long)message->created_at);
    } else {
        fprintf(out, "%s:%s ", role_of(message), message->external->id);
    }
}

static void put_marker(FILE *out, const Message *message, bool has_texts)
{
    const Marker *marker = message->marker;
    if (message->n_parts > 0) fprintf(out, "system=%s ", message->parts[0]->text->text);
    if (has_texts) {
        fprintf(out, "compactionSummary=%s,%ld@%lld ", marker->summary, (long)marker->tokens_before,
                (long long)message->created_at);
    } else {
        fprintf(out, "compactionSummary:%s=%s,%ld ", message->external->id, marker->summary,
                (long)marker->tokens_before);
    }
}

// The context with an entry of the file as the leaf; NULL: the head.
static const char *context(PiStore *store, const char *id, bool has_texts)
{
    static char text[PI_LINES_BYTES_MAX];
    FILE *out = fmemopen(text, sizeof(text), "w");
    BuildContextRequest request = BUILD_CONTEXT_REQUEST__INIT;
    CLEANUP(reply_freep) BuildContextResponse *first = NULL;
    request.session_id = store->session;
    request.newest_model = true;
    CLEANUP(reply_freep) GetMessageResponse *leaf = id ? pi_entry(store, id) : NULL;
    if (leaf) request.through_message_id = leaf->message->id;
    request.cursor = (char *)(uintptr_t) "";
    CLEANUP(reply_freep) BuildContextResponse *page = NULL;
    do {
        BuildContextResponse *next = NULL;
        CHECK_EQ(tine_build_context(store->importer.tine, NULL, &request, &next), 0);
        if (first) {
            reply_freep(&page);
            page = next;
        } else {
            first = next;
        }
        if (next == first && next->marker) put_marker(out, next->marker, has_texts);
        for (size_t i = 0; i < next->n_messages; i++) {
            put_message(out, next->messages[i], has_texts);
        }
        request.cursor = next->next_cursor;
    } while (*request.cursor);
    put_settings(out, first);
    fclose(out);
    return text;
}

const char *pi_context(PiStore *store)
{
    return context(store, NULL, /* has_texts= */ false);
}

const char *pi_context_at(PiStore *store, const char *id)
{
    return context(store, id, /* has_texts= */ false);
}

const char *pi_context_texts(PiStore *store)
{
    return context(store, NULL, /* has_texts= */ true);
}
