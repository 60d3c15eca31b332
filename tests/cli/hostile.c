// Fills requests by their descriptors. Only references to records are left out.

#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "harness.h"
#include "names.h"
#include "tine_calls.h"

static const char TEXT[] = HOSTILE;
// JSON allows no controls below U+0020 in strings, but all others, and white space between tokens.
static const char JSON[] = "{\n\t\"\xc2\x9b"
                           "31m\u202e\":\r\"\u2066\u200b\xc2\xad\U000e0041\177\"}";
static const char *const REFERENCES[] = {
    "parent_id",          "session_id", "expected_head_id", "target_id", "reply_to_id",
    "before_message_id",  "id",         "message_id",       "head_id",   "fork_message_id",
    "through_message_id",
};

static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *type, unsigned variant);

static bool is_reference(const ProtobufCMessageDescriptor *type, const char *name)
{
    // The IDs of these are free text.
    bool is_free = type == &external__descriptor || type == &tool_use__descriptor;
    for (size_t i = 0; !is_free && i < sizeof(REFERENCES) / sizeof(*REFERENCES); i++) {
        if (strcmp(REFERENCES[i], name) == 0) return true;
    }
    return false;
}

static bool is_json(const char *name)
{
    size_t size = strlen(name);
    return strcmp(name, "json") == 0 || (size > 5 && strcmp(name + size - 5, "_json") == 0);
}

static char *text_of(const ProtobufCMessageDescriptor *type, const char *name)
{
    static int count; // an external id may be used once
    char *text = NULL;
    if (is_reference(type, name)) {
        text = strdup("");
    } else if (is_json(name)) {
        text = strdup(JSON);
    } else if (asprintf(&text, type == &external__descriptor ? "%s%d" : "%s", TEXT, count++) < 0) {
        text = NULL;
    }
    CHECK(text != NULL);
    return text;
}

static void fill_value(const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor *field, void *slot, unsigned variant)
{
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_STRING: *(char **)slot = text_of(type, field->name); break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)slot = fill(field->descriptor, variant);
        break;
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData *bytes = slot;
        bytes->data = (uint8_t *)strdup(TEXT);
        bytes->len = sizeof(TEXT) - 1;
        break;
    }
    case PROTOBUF_C_TYPE_ENUM: *(int *)slot = 1; break;
    default: break; // numbers and bools stay 0
    }
}

static unsigned case_count(const ProtobufCMessageDescriptor *type, unsigned quantifier_offset)
{
    unsigned count = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        count += (type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
                 type->fields[i].quantifier_offset == quantifier_offset;
    }
    return count;
}

// Adds one element for each case of the oneof of the element type, or one if there is none.
static void fill_list(const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) return;
    const ProtobufCMessageDescriptor *type = field->descriptor;
    unsigned count = 1;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (!(type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) continue;
        count = case_count(type, type->fields[i].quantifier_offset);
    }
    ProtobufCMessage **list = calloc(count, sizeof(*list));
    for (unsigned i = 0; i < count; i++)
        list[i] = fill(type, i);
    *(ProtobufCMessage ***)(void *)((uint8_t *)message + field->offset) = list;
    *(size_t *)(void *)((uint8_t *)message + field->quantifier_offset) = count;
}

// Returns a message in which every string is set. In each oneof the case `variant` is set.
static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *type, unsigned variant)
{
    ProtobufCMessage *message = calloc(1, type->sizeof_message);
    CHECK(message != NULL);
    protobuf_c_message_init(type, message);
    unsigned group = UINT32_MAX, index = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        void *slot = (uint8_t *)message + field->offset;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_list(field, message);
        } else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
            fill_value(type, field, slot, variant);
        } else {
            index = field->quantifier_offset == group ? index + 1 : 0;
            group = field->quantifier_offset;
            if (index != variant % case_count(type, group)) continue;
            if (is_reference(type, field->name)) continue; // present and empty means something
            *(uint32_t *)(void *)((uint8_t *)message + group) = field->id;
            fill_value(type, field, slot, variant);
        }
    }
    return message;
}

static void check_done(int code, const TineStatus *status)
{
    if (code) printf("%s: %s\n", status->reason, status->message);
    CHECK_EQ(code, 0);
}

// Sends a request and frees both it and the reply.
#define SEND(call, Reply, request)                                                                 \
    do {                                                                                           \
        TineStatus status_;                                                                        \
        TineCallOptions options_ = {.timeout_ms = HARNESS_PATIENCE_MS, .out_status = &status_};    \
        Reply *reply_ = NULL;                                                                      \
        check_done(call(tine, &options_, request, &reply_), &status_);                             \
        protobuf_c_message_free_unpacked(&reply_->base, NULL);                                     \
        protobuf_c_message_free_unpacked(&(request)->base, NULL);                                  \
    } while (0)

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = strdup(value);
    CHECK(*text != NULL);
}

static void create_session(Tine *tine, const char *slug, char out_id[27])
{
    CreateSessionRequest *request =
        (CreateSessionRequest *)fill(&create_session_request__descriptor, 0);
    set_text(&request->session->slug, slug);
    request->session->kind = SESSION_KIND_PRIMARY;
    TineStatus status;
    TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS, .out_status = &status};
    CreateSessionResponse *reply = NULL;
    check_done(tine_create_session(tine, &options, request, &reply), &status);
    snprintf(out_id, 27, "%s", reply->session->id);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

// `target_id` is the ID of any earlier entry and becomes that of the new one.
static void append(Tine *tine, const char *session_id, MessageKind kind, Role role,
                   char target_id[27])
{
    AppendMessageRequest *request =
        (AppendMessageRequest *)fill(&append_message_request__descriptor, 0);
    NewMessage *message = request->message;
    set_text(&request->session_id, session_id);
    message->kind = kind;
    message->role = role;
    message->status = MESSAGE_STATUS_FAILED;
    if (role != ROLE_OTHER) set_text(&message->other_role, "");
    if (kind == MESSAGE_KIND_LABEL) set_text(&message->target_id, target_id);
    message->marker->keep_all = true;
    if (kind != MESSAGE_KIND_COMPACTION) {
        protobuf_c_message_free_unpacked(&message->marker->base, NULL);
        message->marker = NULL;
    }
    TineStatus status;
    TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS, .out_status = &status};
    AppendMessageResponse *reply = NULL;
    check_done(tine_append_message(tine, &options, request, &reply), &status);
    snprintf(target_id, 27, "%s", reply->receipt->id);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void add_records(Tine *tine, char *session_id)
{
    RecordCallRequest *call = (RecordCallRequest *)fill(&record_call_request__descriptor, 0);
    set_text(&call->session_id, session_id);
    SEND(tine_record_call, RecordCallResponse, call);
    RememberSessionMemoryRequest *memory =
        (RememberSessionMemoryRequest *)fill(&remember_session_memory_request__descriptor, 0);
    set_text(&memory->session_id, session_id);
    SEND(tine_remember_session_memory, RememberSessionMemoryResponse, memory);
    ReplaceSessionTodosRequest *todos =
        (ReplaceSessionTodosRequest *)fill(&replace_session_todos_request__descriptor, 0);
    set_text(&todos->session_id, session_id);
    SEND(tine_replace_session_todos, ReplaceSessionTodosResponse, todos);
    PublishEventRequest *event = (PublishEventRequest *)fill(&publish_event_request__descriptor, 0);
    set_text(&event->session_id, session_id);
    set_text(&event->type, "h\033]52;c;aGk=\007\xc2\x9b\u202e\U000e0041"); // no white space
    SEND(tine_publish_event, PublishEventResponse, event);
}

void hostile_store_fill(Tine *tine)
{
    char id[27], target_id[27];
    create_session(tine, HOSTILE_TWICE, id);
    create_session(tine, HOSTILE_TWICE, id);
    create_session(tine, "", id); // its title is shown in the slug's place
    create_session(tine, TEXT, id);
    for (MessageKind kind = MESSAGE_KIND_CONVERSATION; kind <= MESSAGE_KIND_CUSTOM; kind++)
        append(tine, id, kind, ROLE_OTHER, target_id);
    append(tine, id, MESSAGE_KIND_CONVERSATION, ROLE_USER, target_id);
    append(tine, id, MESSAGE_KIND_CONVERSATION, ROLE_ASSISTANT, target_id);
    add_records(tine, id);
}
