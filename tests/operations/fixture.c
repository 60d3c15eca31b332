// The fixture.

#include "fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "connect.h"
#include "wire/wire.h"

typedef struct FixtureMemory {
    ProtobufCMessage **messages;
    size_t message_count;
    void **blocks;
    size_t block_count;
    Transport *transport; // NULL: the client runs in the engine's process
} FixtureMemory;

static const int64_t FIXTURE_NOW_MS = INT64_C(1700000000000);

static int64_t fixture_clock(void *context)
{
    return ((Fixture *)context)->now_ms;
}

static int64_t fixture_boot_clock(void *context)
{
    Fixture *f = context;
    return f->now_ms - f->stepped_ms;
}

void *fixture_alloc(Fixture *f, size_t size)
{
    FixtureMemory *memory = f->memory;
    memory->blocks = realloc(memory->blocks, (memory->block_count + 1) * sizeof(void *));
    void *block = calloc(1, size);
    CHECK(memory->blocks && block);
    memory->blocks[memory->block_count++] = block;
    return block;
}

static void fixture_start(Fixture *f)
{
    ErrorDetail detail = {{0}};
    Error error = engine_open(&f->options, &detail, &f->engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    connect_engine(f->engine, &f->memory->transport, &f->tine);
}

static void fixture_stop(Fixture *f)
{
    disconnect_engine(f->engine, f->memory->transport, f->tine);
    f->tine = NULL;
    f->engine = NULL;
}

Fixture *fixture_open(void)
{
    // Shared, for the clock that is in it, with a process that reads.
    Fixture *f =
        mmap(NULL, sizeof(Fixture), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(f != MAP_FAILED);
    f->memory = calloc(1, sizeof(FixtureMemory));
    f->now_ms = FIXTURE_NOW_MS;
    f->options.store = (StoreOptions){
        .directory = test_dir(),
        .is_ephemeral = true,
        .map_bytes = (size_t)1 << 30,
        .clock = {fixture_clock, fixture_boot_clock, f},
        .random_seed = test_seed(),
    };
    connect_prepare(f->options.store.clock);
    fixture_start(f);
    return f;
}

Fixture *fixture_with_session(const char **out_session)
{
    Fixture *f = fixture_open();
    *out_session = session_ok(f);
    return f;
}

void fixture_reopen(Fixture *f)
{
    fixture_stop(f);
    fixture_start(f);
}

void fixture_step_clock(Fixture *f, int64_t ms)
{
    f->stepped_ms += ms;
    f->now_ms += ms;
}

void fixture_close(Fixture **pointer)
{
    Fixture *f = *pointer;
    if (!f) return;
    fixture_stop(f);
    for (size_t i = 0; i < f->memory->message_count; i++) {
        protobuf_c_message_free_unpacked(f->memory->messages[i], NULL);
    }
    for (size_t i = 0; i < f->memory->block_count; i++)
        free(f->memory->blocks[i]);
    free(f->memory->messages);
    free(f->memory->blocks);
    free(f->memory);
    munmap(f, sizeof(Fixture));
    *pointer = NULL;
}

static void fill_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    uint8_t *base = (uint8_t *)message;
    bool is_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    if (is_oneof && *(uint32_t *)(void *)(base + field->quantifier_offset) != field->id) return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) return;
        size_t count = *(size_t *)(void *)(base + field->quantifier_offset);
        ProtobufCMessage **items = *(ProtobufCMessage ***)(void *)(base + field->offset);
        for (size_t i = 0; i < count; i++) {
            items[i]->descriptor = field->descriptor;
            fixture_fill(items[i]);
        }
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char **text = (const char **)(void *)(base + field->offset);
        if (!*text) *text = "";
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *item = *(ProtobufCMessage **)(void *)(base + field->offset);
        if (!item) return;
        item->descriptor = field->descriptor;
        fixture_fill(item);
    }
}

void fixture_fill(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        fill_field(message, &message->descriptor->fields[i]);
    }
}

void fixture_expect(Fixture *f, int code, const char *reason, const char *file, int line)
{
    if (strcmp(f->status.reason, reason) == 0 && (code != 0) == (*reason != '\0')) return;
    printf("the call ended with code %d, reason '%s': %s\n", code, f->status.reason,
           f->status.message);
    harness_check_text(f->status.reason, reason, "reason", "the expected one", file, line);
}

void fixture_keep(Fixture *f, ProtobufCMessage *message)
{
    FixtureMemory *memory = f->memory;
    memory->messages =
        realloc(memory->messages, (memory->message_count + 1) * sizeof(ProtobufCMessage *));
    CHECK(memory->messages);
    memory->messages[memory->message_count++] = message;
}

Slice fixture_send(Fixture *f, Slice request)
{
    Rpc call;
    rpc_init(&call);
    rpc_reset(&call);
    call.request = request;
    engine_run(f->engine, &call);
    Slice reply = buffer_slice(&call.reply);
    f->status = (TineStatus){.code = 0};
    WireField field;
    if (wire_find(reply, 1, &field)) {
        Status *status = tine__v1__status__unpack(NULL, field.bytes.size, field.bytes.bytes);
        CHECK(status);
        f->status.code = status->code;
        snprintf(f->status.reason, sizeof(f->status.reason), "%s", status->reason);
        snprintf(f->status.message, sizeof(f->status.message), "%s", status->message);
        tine__v1__status__free_unpacked(status, NULL);
    }
    Slice body = {NULL, 0};
    if (wire_find(reply, 15, &field) && field.bytes.size > 0) {
        uint8_t *copy = fixture_alloc(f, field.bytes.size);
        memcpy(copy, field.bytes.bytes, field.bytes.size);
        body = slice(copy, field.bytes.size);
    }
    rpc_free(&call);
    return body;
}

static ModelRef *test_model(Fixture *f)
{
    ModelRef *model = fixture_alloc(f, sizeof(ModelRef));
    *model = (ModelRef){.provider = "anthropic", .name = "model-1"};
    return model;
}

const char *session_ok(Fixture *f)
{
    NewSession session = {.project_dir = "/project", .model = test_model(f)};
    return CALL_OK(f, create_session, CreateSession, {.session = &session})->session->id;
}

const char *subagent_ok(Fixture *f, const char *parent)
{
    NewSession session = {
        .kind = SESSION_KIND_SUBAGENT,
        .parent_id = (char *)(uintptr_t)parent,
        .project_dir = "/project",
        .model = test_model(f),
    };
    return CALL_OK(f, create_session, CreateSession, {.session = &session})->session->id;
}

NewMessage *text_message(Fixture *f, Role role, const char *text)
{
    Text *content = fixture_alloc(f, sizeof(Text));
    Part *part = fixture_alloc(f, sizeof(Part));
    Part **parts = fixture_alloc(f, sizeof(Part *));
    NewMessage *message = fixture_alloc(f, sizeof(NewMessage));
    char *copy = fixture_alloc(f, strlen(text) + 1);
    memcpy(copy, text, strlen(text));
    content->text = copy;
    part->kind_case = PART__KIND_TEXT;
    part->text = content;
    parts[0] = part;
    message->role = role;
    message->parts = parts;
    message->n_parts = 1;
    return message;
}

const char *append_ok(Fixture *f, const char *session, Role role, const char *text)
{
    AppendMessageResponse *response =
        CALL_OK(f, append_message, AppendMessage,
                {.session_id = (char *)(uintptr_t)session, .message = text_message(f, role, text)});
    return response->receipt->id;
}

const char *append_after_ok(Fixture *f, const char *session, const char *parent, const char *text)
{
    AppendMessageResponse *response =
        CALL_OK(f, append_message, AppendMessage,
                {.session_id = (char *)(uintptr_t)session,
                 .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
                 .parent_id = (char *)(uintptr_t)parent,
                 .message = text_message(f, ROLE_USER, text)});
    return response->receipt->id;
}

const char *fork_ok(Fixture *f, const char *session, const char *through)
{
    ForkSessionRequest request = {.session_id = (char *)(uintptr_t)session};
    if (through) {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
        request.through_message_id = (char *)(uintptr_t)through;
    } else {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
        request.at_head = true;
    }
    return CALL_OK(f, fork_session, ForkSession, request)->session->id;
}

Session *get_ok(Fixture *f, const char *session)
{
    return CALL_OK(f, get_session, GetSession, {.session_id = (char *)(uintptr_t)session})->session;
}

// Appends the messages' texts to a growing string.
static char *texts_add(Fixture *f, char *joined, Message **messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = "-";
        if (messages[i]->n_parts && messages[i]->parts[0]->kind_case == PART__KIND_TEXT) {
            text = messages[i]->parts[0]->text->text;
        } else if (*messages[i]->text) {
            text = messages[i]->text;
        }
        size_t size = strlen(joined) + strlen(text) + 2;
        char *longer = fixture_alloc(f, size);
        snprintf(longer, size, "%s%s%s", joined, *joined ? " " : "", text);
        joined = longer;
    }
    return joined;
}

#define ALL_TEXTS(f, name, Name, session)                                                          \
    ({                                                                                             \
        char *joined = fixture_alloc((f), 1);                                                      \
        char *cursor = "";                                                                         \
        do {                                                                                       \
            Name##Response *page =                                                                 \
                CALL_OK((f), name, Name,                                                           \
                        {.session_id = (char *)(uintptr_t)(session), .cursor = cursor});           \
            joined = texts_add((f), joined, page->messages, page->n_messages);                     \
            cursor = page->next_cursor;                                                            \
        } while (*cursor);                                                                         \
        joined;                                                                                    \
    })

const char *history_texts(Fixture *f, const char *session)
{
    return ALL_TEXTS(f, messages_for_session, MessagesForSession, session);
}

const char *direct_texts(Fixture *f, const char *session)
{
    return ALL_TEXTS(f, messages_direct_for_session, MessagesDirectForSession, session);
}

const char *window_texts(Fixture *f, const char *session)
{
    return ALL_TEXTS(f, messages_since_latest_marker, MessagesSinceLatestMarker, session);
}
