// The alkdev hub's sessions, messages and parts: each rule of docs/systems/alkdev.md.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "open_message.h"

static Session *titled_ok(Fixture *f, const char *title)
{
    NewSession wanted = new_session();
    wanted.title = CHARS(title);
    return CALL_OK(f, create_session, CreateSession,
                   {.session = &wanted, .slug_policy = SLUG_POLICY_FROM_TITLE})
        ->session;
}

static Session *update_ok(Fixture *f, const char *session, SessionField field,
                          UpdateSessionRequest request)
{
    request.session_id = CHARS(session);
    request.n_mask = 1;
    request.mask = &field;
    return CALL_OK(f, update_session, UpdateSession, request)->session;
}

TEST(alkdev_columns_of_a_session_come_back)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.account_id = "account-1";
    wanted.project_id = "project-1";
    wanted.workspace_id = "workspace-1";
    wanted.title = "Fix it";
    wanted.execution = "opencode";
    wanted.role_name = "implementer";
    wanted.data_version = "1";
    wanted.data_json = "{\"scope\":[\"read\"],\"finish\":\"stop\"}";
    wanted.metadata_json = "{\"a\":1}";
    External external = {.source = "alkdev", .id = "3f0c1d9e-95f1-4a3b-8f7b-2f1f5f0f9a11"};
    wanted.external = &external;
    wanted.created_at = 1234567890123;
    Session *got = get_ok(f, create_ok(f, &wanted)->id);
    CHECK_STR(got->account_id, "account-1");
    CHECK_STR(got->project_id, "project-1");
    CHECK_STR(got->workspace_id, "workspace-1");
    CHECK_STR(got->title, "Fix it");
    CHECK_STR(got->execution, "opencode");
    CHECK_STR(got->role_name, "implementer");
    CHECK_STR(got->data_version, "1");
    CHECK_STR(got->data_json, wanted.data_json);
    CHECK_STR(got->metadata_json, "{\"a\":1}");
    CHECK_STR(got->external->id, external.id);
    CHECK_EQ(got->status, SESSION_STATUS_IDLE);
    CHECK_EQ(got->created_at, wanted.created_at);
    CHECK(got->updated_at >= got->created_at);
}

TEST(alkdev_slug_is_made_of_the_title)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    static const char *const SLUGS[][2] = {
        {"Fix the Thing!", "fix-the-thing"},
        {"  --A  b__c--  ", "a-b-c"},
        {"!!!", "session"},
        {"\xc3\x84rger 2", "\xc3\xa4rger-2"},
    };
    for (size_t i = 0; i < sizeof(SLUGS) / sizeof(*SLUGS); i++)
        CHECK_STR(titled_ok(f, SLUGS[i][0])->slug, SLUGS[i][1]);
    char *longest = filled(f, 'x', 1024);
    size_t size = strlen(titled_ok(f, longest)->slug);
    CHECK(size <= 128 && size >= 100);
    CHECK(strcmp(titled_ok(f, longest)->slug, titled_ok(f, longest)->slug) != 0);
}

TEST(alkdev_slug_is_unique_by_a_suffix)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK_STR(titled_ok(f, "Fix it")->slug, "fix-it");
    CHECK_STR(titled_ok(f, "Fix it")->slug, "fix-it-2");
    CHECK_STR(titled_ok(f, "fix IT?")->slug, "fix-it-3");
    const char *source = titled_ok(f, "Fix it")->id;
    Session *fork = CALL_OK(f, fork_session, ForkSession,
                            {.session_id = CHARS(source),
                             .slug_policy = SLUG_POLICY_FROM_TITLE,
                             .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                             .at_head = true})
                        ->session;
    CHECK_STR(fork->slug, "fix-it-5");
}

TEST(alkdev_slug_of_the_title_needs_one_and_no_slug)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    CreateSessionRequest request = {.session = &wanted, .slug_policy = SLUG_POLICY_FROM_TITLE};
    CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "title"));
    wanted.title = "Fix it";
    wanted.slug = "mine";
    CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "slug"));
    const char *session = session_ok(f);
    CALL_FAILS(f, rename_session, RenameSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .slug_policy = SLUG_POLICY_FROM_TITLE});
    ForkSessionRequest fork = {.session_id = CHARS(session),
                               .slug_policy = SLUG_POLICY_FROM_TITLE,
                               .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                               .at_head = true};
    CALL_FAILS(f, fork_session, ForkSession, "INVALID_ARGUMENT", fork);
    CHECK(strstr(f->status.message, "title"));
    fork.slug = "mine";
    CALL_FAILS(f, fork_session, ForkSession, "INVALID_ARGUMENT", fork);
}

enum { THREADS = 8, CREATES = 20 };

static void *create_many(void *context)
{
    ModelRef model = MODEL_REF__INIT;
    model.provider = "p";
    model.name = "m";
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = "/project";
    session.title = "The same title";
    session.model = &model;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    request.slug_policy = SLUG_POLICY_FROM_TITLE;
    for (int i = 0; i < CREATES; i++) {
        CreateSessionResponse *response = NULL;
        if (tine_create_session(context, NULL, &request, &response)) return context;
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    return NULL;
}

TEST(alkdev_slugs_of_concurrent_creates_are_distinct)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, create_many, f->tine), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        CHECK_EQ(pthread_join(threads[i], &failed), 0);
        CHECK(failed == NULL);
    }
    for (int i = 1; i <= THREADS * CREATES; i++) {
        char slug[32];
        snprintf(slug, sizeof(slug), i == 1 ? "the-same-title" : "the-same-title-%d", i);
        ResolveSessionResponse *found =
            CALL_OK(f, resolve_session, ResolveSession,
                    {.by_case = RESOLVE_SESSION_REQUEST__BY_SLUG, .slug = slug});
        CHECK_EQ(found->n_sessions, 1);
    }
}

TEST(alkdev_status_goes_from_idle_to_busy_to_retry_and_back)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    static const SessionStatus STEPS[] = {SESSION_STATUS_BUSY, SESSION_STATUS_RETRY,
                                          SESSION_STATUS_BUSY, SESSION_STATUS_IDLE};
    for (size_t i = 0; i < sizeof(STEPS) / sizeof(*STEPS); i++) {
        update_ok(f, session, SESSION_FIELD_STATUS, (UpdateSessionRequest){.status = STEPS[i]});
        CHECK_EQ(get_ok(f, session)->status, STEPS[i]);
    }
    SessionField mask[] = {SESSION_FIELD_STATUS};
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .n_mask = 1, .mask = mask, .status = 9});
}

TEST(alkdev_archived_is_read_only_until_it_is_opened_again)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *open = open_ok(f, session, ROLE_ASSISTANT);
    archive_ok(f, session, true);
    CALL_FAILS(f, append_message, AppendMessage, "SESSION_ARCHIVED",
               {.session_id = CHARS(session), .message = text_message(f, ROLE_USER, "m2")});
    append_part_fails(f, open, text_part(f, "a", "x"), "SESSION_ARCHIVED");
    SessionField mask[] = {SESSION_FIELD_STATUS};
    CALL_FAILS(
        f, update_session, UpdateSession, "SESSION_ARCHIVED",
        {.session_id = CHARS(session), .n_mask = 1, .mask = mask, .status = SESSION_STATUS_BUSY});
    CHECK_STR(window_texts(f, session), "m1");
    archive_ok(f, session, false);
    append_part_ok(f, open, text_part(f, "a", "x"));
}

static size_t count_of(Fixture *f, ListSessionsRequest request)
{
    return CALL_OK(f, list_sessions, ListSessions, request)->n_sessions;
}

TEST(alkdev_every_indexed_column_is_a_filter)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.account_id = "a1";
    wanted.project_id = "p1";
    wanted.workspace_id = "w1";
    wanted.role_name = "r1";
    const char *parent = create_ok(f, &wanted)->id;
    wanted.account_id = "a2";
    create_ok(f, &wanted);
    wanted.project_id = "p2";
    wanted.workspace_id = "";
    create_ok(f, &wanted);
    const char *child = subagent_ok(f, parent);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.account_id = "a1"}), 1);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.account_id = "a2"}), 2);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.project_id = "p1"}), 2);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.workspace_id = "w1"}), 2);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.role_name = "r1"}), 3);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.role_name = "r1", .project_id = "p2"}), 1);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.parent_id = CHARS(parent)}), 1);
    update_ok(f, child, SESSION_FIELD_STATUS,
              (UpdateSessionRequest){.status = SESSION_STATUS_BUSY});
    CHECK_EQ(count_of(f, (ListSessionsRequest){.status = SESSION_STATUS_BUSY}), 1);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.status = SESSION_STATUS_IDLE}), 3);
}

TEST(alkdev_active_sessions_are_those_not_archived)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *idle = session_ok(f), *busy = session_ok(f), *archived = session_ok(f);
    update_ok(f, busy, SESSION_FIELD_STATUS, (UpdateSessionRequest){.status = SESSION_STATUS_BUSY});
    archive_ok(f, archived, true);
    ListSessionsRequest request = {.archived = ARCHIVED_FILTER_EXCLUDE};
    ListSessionsResponse *active = CALL_OK(f, list_sessions, ListSessions, request);
    CHECK_EQ(active->n_sessions, 2);
    CHECK_STR(active->sessions[0]->id, busy);
    CHECK_STR(active->sessions[1]->id, idle);
    request.archived = ARCHIVED_FILTER_ONLY;
    CHECK_STR(CALL_OK(f, list_sessions, ListSessions, request)->sessions[0]->id, archived);
    CHECK_EQ(count_of(f, request), 1);
    request.archived = ARCHIVED_FILTER_INCLUDE;
    CHECK_EQ(count_of(f, request), 3);
    CHECK_EQ(count_of(f, (ListSessionsRequest){.limit = 10}), 3);
    request = (ListSessionsRequest){.archived = ARCHIVED_FILTER_EXCLUDE, .limit = 1};
    CHECK(*CALL_OK(f, list_sessions, ListSessions, request)->next_cursor != '\0');
}

TEST(alkdev_child_lives_on_when_its_parent_is_purged)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    const char *child = subagent_ok(f, parent);
    append_ok(f, child, ROLE_USER, "m1");
    purge_ok(f, parent, /* keep_for_forks= */ false);
    purges_settle(f);
    CHECK_STR(get_ok(f, child)->parent_id, "");
    CHECK_STR(history_texts(f, child), "m1");
    append_ok(f, child, ROLE_USER, "m2");
    check_store_ok(f);
}

TEST(alkdev_purge_of_a_session_takes_messages_and_parts)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, tool_part(f, "p", "ls", TOOL_STATE_RUNNING));
    purge_ok(f, session, /* keep_for_forks= */ false);
    purges_settle(f);
    CHECK_EQ(table_rows(f, "messages"), 0);
    CHECK_EQ(table_rows(f, "parts"), 0);
    append_part_fails(f, id, text_part(f, "q", "x"), "MESSAGE_NOT_FOUND");
}

static Part *extension_part(Fixture *f, const char *id, const char *type, const char *json)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->id = CHARS(id);
    part->kind_case = PART__KIND_EXTENSION;
    part->extension = fixture_alloc(f, sizeof(Extension));
    part->extension->type = CHARS(type);
    part->extension->json = CHARS(json);
    return part;
}

static Part *file_part(Fixture *f, const char *id, const char *source)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->id = CHARS(id);
    part->kind_case = PART__KIND_FILE;
    part->file = fixture_alloc(f, sizeof(File));
    part->file->mime_type = "text/x-c";
    part->file->filename = "a.c";
    part->file->source_case = FILE__SOURCE_URL;
    part->file->url = "file:///a.c";
    part->file->source_json = CHARS(source);
    return part;
}

// Where a file is from: each kind that the hub has.
static const char *const FILE_SOURCES[] = {
    "{\"type\":\"file\",\"path\":\"a.c\",\"text\":{\"value\":\"@a.c\",\"start\":0,\"end\":4}}",
    "{\"type\":\"symbol\",\"kind\":12,\"range\":{\"start\":1,\"end\":2}}",
    "{\"type\":\"resource\",\"clientName\":\"c\",\"uri\":\"r://x\"}",
};

TEST(alkdev_file_keeps_its_source_whichever_it_is)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_USER);
    for (size_t i = 0; i < 3; i++)
        append_part_ok(f, id, file_part(f, "", FILE_SOURCES[i]));
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 3);
    for (size_t i = 0; i < 3; i++) {
        const File *file = message->parts[i]->file;
        CHECK_STR(file->source_json, FILE_SOURCES[i]);
        CHECK_STR(file->mime_type, "text/x-c");
        CHECK_STR(file->filename, "a.c");
        CHECK_STR(file->url, "file:///a.c");
    }
}

static const struct {
    const char *type, *json;
} EXTENSIONS[] = {
    {"step-start", "{\"snapshot\":\"s1\"}"},
    {"step-finish", "{\"reason\":\"stop\",\"cost\":0.5,\"tokens\":{\"input\":1}}"},
    {"patch", "{\"hash\":\"h\",\"files\":[\"a.c\"]}"},
    {"snapshot", "{\"snapshot\":\"s2\"}"},
    {"agent", "{\"name\":\"build\"}"},
    {"compaction", "{\"auto\":true,\"overflow\":false}"},
};

TEST(alkdev_every_part_type_comes_back_in_the_order_of_appends)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    Part *text = text_part(f, "prt_9", "hello");
    text->text->synthetic = text->text->ignored = true;
    text->started_at = 5;
    text->metadata_json = "{\"m\":1}";
    append_part_ok(f, id, text);
    Thinking thinking = {.text = "why"};
    append_part_ok(f, id,
                   &(Part){.id = "prt_8",
                           .started_at = 1,
                           .ended_at = 2,
                           .kind_case = PART__KIND_THINKING,
                           .thinking = &thinking});
    append_part_ok(f, id, file_part(f, "prt_7", "{\"type\":\"symbol\",\"kind\":12}"));
    for (size_t i = 0; i < sizeof(EXTENSIONS) / sizeof(*EXTENSIONS); i++) {
        append_part_ok(f, id, extension_part(f, "", EXTENSIONS[i].type, EXTENSIONS[i].json));
    }
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 9);
    CHECK_STR(message->parts[0]->id, "prt_9"); // the clock stands still: no id or time decides
    CHECK(message->parts[0]->text->synthetic && message->parts[0]->text->ignored);
    CHECK_STR(message->parts[0]->metadata_json, "{\"m\":1}");
    CHECK_STR(message->parts[1]->thinking->text, "why");
    CHECK_EQ(message->parts[1]->ended_at, 2);
    CHECK_STR(message->parts[2]->file->source_json, "{\"type\":\"symbol\",\"kind\":12}");
    for (size_t i = 0; i < sizeof(EXTENSIONS) / sizeof(*EXTENSIONS); i++) {
        CHECK_STR(message->parts[3 + i]->extension->type, EXTENSIONS[i].type);
        CHECK_STR(message->parts[3 + i]->extension->json, EXTENSIONS[i].json);
    }
}

TEST(alkdev_tool_goes_through_its_states_with_times_and_attachments)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    Part *tool = tool_part(f, "prt_1", "read", TOOL_STATE_PENDING);
    tool->tool_use->input_case = TOOL_USE__INPUT_INPUT_TEXT;
    tool->tool_use->input_text = "{\"pa"; // raw, as far as it has come
    append_part_ok(f, id, tool);
    const Part *now = message_ok(f, id)->parts[0];
    CHECK_EQ(now->tool_use->state, TOOL_STATE_PENDING);
    CHECK_STR(now->tool_use->input_text, "{\"pa");
    tool->tool_use->input_case = TOOL_USE__INPUT_INPUT_JSON;
    tool->tool_use->input_json = "{\"path\":\"a.c\"}";
    tool->tool_use->state = TOOL_STATE_RUNNING;
    tool->tool_use->title = "Reading";
    tool->metadata_json = "{\"lines\":3}";
    tool->started_at = 10;
    append_part_ok(f, id, tool);
    now = message_ok(f, id)->parts[0];
    CHECK_EQ(now->tool_use->state, TOOL_STATE_RUNNING);
    CHECK_EQ(now->started_at, 10);
    CHECK_EQ(now->ended_at, 0);
    tool->tool_use->state = TOOL_STATE_COMPLETED;
    tool->ended_at = 20;
    append_part_ok(f, id, tool);
    File shot = {.mime_type = "image/png", .source_case = FILE__SOURCE_URL, .url = "file:///s"};
    Attachment attachment = {.kind_case = ATTACHMENT__KIND_FILE, .file = &shot};
    Attachment *attachments[] = {&attachment};
    ToolResult result = {.tool_use_id = "call-1",
                         .tool_name = "read",
                         .content = "int main",
                         .n_attachments = 1,
                         .attachments = attachments};
    append_part_ok(f, id, &(Part){.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &result});
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 2);
    const Part *got = message->parts[0];
    CHECK_EQ(got->tool_use->state, TOOL_STATE_COMPLETED);
    CHECK_STR(got->tool_use->input_json, "{\"path\":\"a.c\"}");
    CHECK_STR(got->tool_use->title, "Reading");
    CHECK_STR(got->metadata_json, "{\"lines\":3}");
    CHECK_EQ(got->ended_at - got->started_at, 10);
    CHECK_STR(message->parts[1]->tool_result->attachments[0]->file->url, "file:///s");
}

TEST(alkdev_tool_that_failed_has_its_error)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    Part *tool = tool_part(f, "prt_1", "read", TOOL_STATE_RUNNING);
    append_part_ok(f, id, tool);
    tool->tool_use->state = TOOL_STATE_ERROR;
    tool->started_at = 10;
    tool->ended_at = 12;
    append_part_ok(f, id, tool);
    ToolResult result = {.tool_use_id = tool->tool_use->id,
                         .tool_name = "read",
                         .content = "no such file",
                         .is_error = true};
    append_part_ok(f, id, &(Part){.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &result});
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 2);
    CHECK_EQ(message->parts[0]->tool_use->state, TOOL_STATE_ERROR);
    CHECK_EQ(message->parts[0]->ended_at, 12);
    const ToolResult *got = message->parts[1]->tool_result;
    CHECK(got->is_error);
    CHECK_STR(got->content, "no such file");
    CHECK_STR(got->tool_use_id, message->parts[0]->tool_use->id);
}

TEST(alkdev_part_of_an_unknown_or_sealed_message_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_fails(f, UNKNOWN_ID, text_part(f, "a", "x"), "MESSAGE_NOT_FOUND");
    Usage usage = {.input_tokens = 5,
                   .output_tokens = 3,
                   .cache_read_tokens = 11,
                   .cache_write_tokens = 13,
                   .reasoning_tokens = 2,
                   .cost_nano_usd = 7};
    seal_ok(f, id, (SealMessageRequest){.finish_reason = "stop", .usage = &usage});
    append_part_fails(f, id, text_part(f, "a", "x"), "MESSAGE_SEALED");
    Message *message = message_ok(f, id);
    CHECK_STR(message->finish_reason, "stop");
    CHECK_EQ(message->usage->input_tokens, 5);
    CHECK_EQ(message->usage->output_tokens, 3);
    CHECK_EQ(message->usage->cache_read_tokens, 11);
    CHECK_EQ(message->usage->cache_write_tokens, 13);
    CHECK_EQ(message->usage->reasoning_tokens, 2);
    CHECK_EQ(message->usage->cost_nano_usd, 7);
    CHECK_STR(message->session_id, session);
}

TEST(alkdev_columns_of_a_message_come_back)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *user = append_ok(f, session, ROLE_USER, "do it");
    ModelRef model = {.provider = "anthropic", .name = "model-1"};
    ErrorInfo said = {.code = "overloaded", .message = "later"};
    External external = {.source = "alkdev", .id = "b1a1c3f0-0000-4000-8000-000000000001"};
    NewMessage message = {.role = ROLE_ASSISTANT,
                          .reply_to_id = CHARS(user),
                          .model = &model,
                          .agent = "build",
                          .status = MESSAGE_STATUS_FAILED,
                          .error = &said,
                          .created_at = 8,
                          .completed_at = 9,
                          .external = &external,
                          .data_json = "{\"path\":{\"cwd\":\"/p\",\"root\":\"/\"},"
                                       "\"format\":{\"type\":\"json_schema\"},"
                                       "\"summary\":{\"title\":\"t\",\"diffs\":[]},"
                                       "\"tools\":{\"bash\":false}}"};
    Message *got = message_ok(f, entry_ok(f, session, &message)->id);
    CHECK_STR(got->reply_to_id, user);
    CHECK_STR(got->model->name, "model-1");
    CHECK_STR(got->agent, "build");
    CHECK_STR(got->error->code, "overloaded");
    CHECK_STR(got->error->message, "later");
    CHECK_STR(got->model->provider, "anthropic");
    CHECK_EQ(got->created_at, 8);
    CHECK_EQ(got->completed_at, 9);
    CHECK_STR(got->external->source, "alkdev");
    CHECK_STR(got->external->id, external.id);
    CHECK_STR(got->data_json, message.data_json);
    CHECK_EQ(message_ok(f, append_ok(f, session, ROLE_SYSTEM, "rules"))->role, ROLE_SYSTEM);
}

TEST(alkdev_tool_parts_of_a_session_are_found_by_the_index)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *other = session_ok(f);
    for (int i = 0; i < 3; i++) {
        const char *id = open_ok(f, session, ROLE_ASSISTANT);
        append_part_ok(f, id, text_part(f, "t", "x"));
        append_part_ok(f, id, tool_part(f, "p", i == 1 ? "bash" : "read", TOOL_STATE_COMPLETED));
        seal_ok(f, id, (SealMessageRequest){.status = 0});
    }
    append_part_ok(f, open_ok(f, other, ROLE_ASSISTANT),
                   tool_part(f, "p", "read", TOOL_STATE_COMPLETED));
    PartKind kinds[] = {PART_KIND_TOOL_USE};
    ListPartsRequest request = {.session_id = CHARS(session), .n_kinds = 1, .kinds = kinds};
    CHECK_EQ(CALL_OK(f, list_parts, ListParts, request)->n_parts, 3);
    request.name = "read";
    CHECK_EQ(CALL_OK(f, list_parts, ListParts, request)->n_parts, 2);
}

TEST(alkdev_events_of_parts_come_in_order)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    uint64_t before = newest_sequence(f);
    for (int i = 0; i < 20; i++) {
        char part_id[16];
        snprintf(part_id, sizeof(part_id), "prt_%d", i);
        append_part_ok(f, id, text_part(f, part_id, "x"));
    }
    ListEventsResponse *list =
        CALL_OK(f, list_events, ListEvents,
                {.session_id = CHARS(session), .after_sequence = before, .limit = 100});
    CHECK_EQ(list->n_events, 20);
    for (int i = 0; i < 20; i++) {
        char part_id[16];
        snprintf(part_id, sizeof(part_id), "prt_%d", i);
        CHECK_STR(list->events[i]->type, "part.appended");
        CHECK_STR(list->events[i]->record_id, part_id);
    }
}
