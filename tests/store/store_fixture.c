// The store's fixture.

#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/open.h"
#include "store/purge.h"

static const int64_t START_MS = INT64_C(1700000000000);

static int64_t fixture_clock(void *context)
{
    return ((StoreFixture *)context)->now_ms;
}

static int64_t fixture_boot_clock(void *context)
{
    StoreFixture *f = context;
    return f->now_ms - f->stepped_ms;
}

static void fixture_start(StoreFixture *f)
{
    ErrorDetail detail = {{0}};
    Error error = store_open(&f->options, &detail, &f->store);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
}

StoreFixture *store_fixture_make(void)
{
    StoreFixture *f = calloc(1, sizeof(StoreFixture));
    CHECK(f != NULL);
    f->now_ms = START_MS;
    f->options = (StoreOptions){
        .directory = test_dir(),
        .is_ephemeral = true,
        .map_bytes = (size_t)1 << 30,
        .clock = {fixture_clock, fixture_boot_clock, f},
        .random_seed = test_seed(),
    };
    arena_init(&f->arena, (size_t)1 << 30);
    return f;
}

StoreFixture *store_fixture_open(void)
{
    StoreFixture *f = store_fixture_make();
    fixture_start(f);
    return f;
}

void store_fixture_reopen(StoreFixture *f)
{
    store_close(f->store);
    f->store = NULL;
    fixture_start(f);
}

void store_fixture_close(StoreFixture **pointer)
{
    StoreFixture *f = *pointer;
    if (!f) return;
    txn_abort(&f->txn);
    store_close(f->store);
    arena_free(&f->arena);
    free(f);
    *pointer = NULL;
}

Txn *step_begin(StoreFixture *f)
{
    CHECK_EQ(txn_begin(f->store, /* is_write= */ true, &f->arena, NULL, &f->txn), ERROR_NONE);
    return &f->txn;
}

void step_end(StoreFixture *f)
{
    CHECK_EQ(txn_commit(&f->txn), ERROR_NONE);
}

Session *new_settings(StoreFixture *f)
{
    Session *settings = arena_new(&f->arena, Session);
    ModelRef *model = arena_new(&f->arena, ModelRef);
    CHECK(settings && model);
    tine__v1__session__init(settings);
    tine__v1__model_ref__init(model);
    model->provider = "anthropic";
    model->name = "model-1";
    settings->kind = SESSION_KIND_PRIMARY;
    settings->project_dir = "/project";
    settings->model = model;
    return settings;
}

Ulid create_session(StoreFixture *f, Session *settings, const SessionOrigin *origin)
{
    SessionOrigin none = {.is_set = false};
    Ulid id;
    STEP(f, session_create(txn, settings, SLUG_POLICY_FREE, origin ? origin : &none, &id));
    return id;
}

Ulid primary_session(StoreFixture *f)
{
    return create_session(f, new_settings(f), NULL);
}

Ulid subagent_session(StoreFixture *f, Ulid parent)
{
    Session *settings = new_settings(f);
    settings->kind = SESSION_KIND_SUBAGENT;
    settings->parent_id = id_text(f, parent);
    return create_session(f, settings, NULL);
}

Ulid fork_session(StoreFixture *f, Ulid source, ForkPoint point)
{
    Session *settings = new_settings(f);
    settings->parent_id = id_text(f, source);
    SessionOrigin origin;
    STEP(f, session_fork_origin(txn, source, &point, &origin));
    return create_session(f, settings, &origin);
}

NewMessage *entry(StoreFixture *f, MessageKind kind, const char *text)
{
    NewMessage *message = arena_new(&f->arena, NewMessage);
    CHECK(message != NULL);
    tine__v1__new_message__init(message);
    message->kind = kind;
    message->role = ROLE_SYSTEM;
    message->status = MESSAGE_STATUS_COMPLETE;
    message->text = arena_string(&f->arena, slice_of(text));
    return message;
}

void add_part(StoreFixture *f, NewMessage *message, Part *part)
{
    Part **parts = arena_array(&f->arena, Part *, message->n_parts + 1);
    CHECK(parts != NULL);
    for (size_t i = 0; i < message->n_parts; i++)
        parts[i] = message->parts[i];
    parts[message->n_parts++] = part;
    message->parts = parts;
}

NewMessage *text_message(StoreFixture *f, Role role, const char *text)
{
    NewMessage *message = entry(f, MESSAGE_KIND_CONVERSATION, "");
    message->role = role;
    Part *part = arena_new(&f->arena, Part);
    Text *content = arena_new(&f->arena, Text);
    CHECK(part && content);
    tine__v1__part__init(part);
    tine__v1__text__init(content);
    content->text = arena_string(&f->arena, slice_of(text));
    part->kind_case = PART__KIND_TEXT;
    part->text = content;
    add_part(f, message, part);
    return message;
}

Ulid append_message(StoreFixture *f, MessageAppend append, NewMessage *message)
{
    MessageDraft draft;
    CHECK_EQ(message_draft_make(&f->arena, message, NULL, &draft), ERROR_NONE);
    append.draft = &draft;
    Receipt receipt = RECEIPT__INIT;
    Ulid id;
    STEP(f, message_append(txn, &append, &receipt, &id));
    return id;
}

Ulid append_text(StoreFixture *f, Ulid session, Role role, const char *text)
{
    return append_message(f, (MessageAppend){.session = session}, text_message(f, role, text));
}

void run_purges(StoreFixture *f)
{
    bool more = true;
    while (more)
        STEP(f, purge_slice(txn, &more));
}

char *id_text(StoreFixture *f, Ulid id)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(id, text);
    char *copy = arena_string(&f->arena, slice_of(text));
    CHECK(copy != NULL);
    return copy;
}
