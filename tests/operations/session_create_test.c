// CreateSession and GetSession.

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

static void create_fails(Fixture *f, const char *reason, NewSession *wanted)
{
    CALL_FAILS(f, create_session, CreateSession, reason, {.session = wanted});
}

TEST(a_created_session_has_the_servers_fields)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    Session *created = create_ok(f, &wanted);
    CHECK_EQ(strlen(created->id), 26);
    CHECK_STR(created->root_id, created->id);
    CHECK_EQ(created->kind, SESSION_KIND_PRIMARY);
    CHECK_STR(created->project_dir, "/project");
    CHECK_STR(created->model->provider, "anthropic");
    CHECK_STR(created->model->name, "model-1");
    CHECK_STR(created->parent_id, "");
    CHECK_STR(created->fork_message_id, "");
    CHECK_STR(created->head_id, "");
    CHECK_STR(created->last_entry_id, "");
    CHECK_EQ(created->status, SESSION_STATUS_IDLE);
    CHECK_EQ(created->created_at, f->now_ms);
    CHECK_EQ(created->updated_at, f->now_ms);
    CHECK_EQ(created->last_active_at, f->now_ms);
    CHECK_EQ(created->deleted_at, 0);
    CHECK_EQ(created->archived_at, 0);
    CHECK_EQ(created->entry_count + created->message_count + created->call_count, 0);
    CHECK_EQ(created->next_sequence, 0);
    check_totals(created->totals, 0, 0, 0, 0, 0);
    check_totals(created->own_totals, 0, 0, 0, 0, 0);
    CHECK(created->external == NULL);
    CHECK(created->last_call == NULL);
}

TEST(a_created_session_keeps_every_field_that_was_given)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "p1"};
    NewSession wanted = new_session();
    wanted.slug = "slug";
    wanted.title = "title";
    wanted.parent_tool_use_id = "toolu_1";
    wanted.user_name = "user";
    wanted.account_id = "account";
    wanted.project_id = "project";
    wanted.workspace_id = "workspace";
    wanted.role_name = "role";
    wanted.execution = "execution";
    wanted.data_version = "v1";
    wanted.external = &external;
    wanted.source_parent = "their-parent";
    wanted.metadata_json = "{\"a\":1}";
    wanted.system_prompt = "be good";
    wanted.data_json = "[1,2]";
    Session *read = get_ok(f, create_ok(f, &wanted)->id);
    CHECK_STR(read->slug, "slug");
    CHECK_STR(read->title, "title");
    CHECK_STR(read->parent_tool_use_id, "toolu_1");
    CHECK_STR(read->user_name, "user");
    CHECK_STR(read->account_id, "account");
    CHECK_STR(read->project_id, "project");
    CHECK_STR(read->workspace_id, "workspace");
    CHECK_STR(read->role_name, "role");
    CHECK_STR(read->execution, "execution");
    CHECK_STR(read->data_version, "v1");
    CHECK_STR(read->external->source, "pi");
    CHECK_STR(read->external->id, "p1");
    CHECK_STR(read->source_parent, "their-parent");
    CHECK_STR(read->metadata_json, "{\"a\":1}");
    CHECK_STR(read->system_prompt, "be good");
    CHECK_STR(read->data_json, "[1,2]");
}

TEST(a_write_reply_leaves_out_system_prompt_and_data)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.system_prompt = "be good";
    wanted.data_json = "{}";
    wanted.metadata_json = "{}";
    Session *created = create_ok(f, &wanted);
    CHECK_STR(created->system_prompt, "");
    CHECK_STR(created->data_json, "");
    CHECK_STR(created->metadata_json, "{}");
}

TEST(ids_of_sessions_rise_while_the_clock_stands_still_or_goes_back)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *last = session_ok(f);
    for (int i = 0; i < 20; i++) {
        f->now_ms -= i;
        const char *next = session_ok(f);
        CHECK(strcmp(last, next) < 0);
        last = next;
    }
    fixture_reopen(f);
    CHECK(strcmp(last, session_ok(f)) < 0);
}

TEST(create_needs_a_session_a_project_dir_and_both_names_of_a_model)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT", {.session = NULL});
    NewSession wanted = new_session();
    wanted.project_dir = "";
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    wanted = new_session();
    wanted.model = NULL;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    ModelRef no_name = {.provider = "anthropic"}, no_provider = {.name = "model-1"};
    wanted.model = &no_name;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    wanted.model = &no_provider;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    CHECK_EQ(table_rows(f, "sessions"), 0);
}

TEST(an_unknown_kind_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.kind = (SessionKind)7;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
}

TEST(a_primary_session_with_a_parent_needs_a_fork_point)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    NewSession wanted = new_session();
    wanted.parent_id = CHARS(parent);
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    const char *m1 = append_ok(f, parent, ROLE_USER, "m1");
    CreateSessionResponse *made =
        CALL_OK(f, create_session, CreateSession,
                {.session = &wanted,
                 .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID,
                 .through_message_id = CHARS(m1)});
    CHECK_STR(made->session->parent_id, parent);
    CHECK_STR(made->session->fork_message_id, m1);
    CHECK_STR(made->session->head_id, m1);
    CHECK_STR(history_texts(f, made->session->id), "m1");
}

TEST(a_subagent_starts_with_an_empty_history)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    append_ok(f, parent, ROLE_USER, "m1");
    NewSession wanted = new_session();
    wanted.kind = SESSION_KIND_SUBAGENT;
    wanted.parent_id = CHARS(parent);
    wanted.parent_tool_use_id = "toolu_1";
    Session *sub = create_ok(f, &wanted);
    CHECK_EQ(sub->kind, SESSION_KIND_SUBAGENT);
    CHECK_STR(sub->parent_id, parent);
    CHECK_STR(sub->root_id, parent);
    CHECK_STR(sub->fork_message_id, "");
    CHECK_STR(get_ok(f, sub->id)->parent_tool_use_id, "toolu_1");
    CHECK_STR(history_texts(f, sub->id), "");
    append_ok(f, sub->id, ROLE_USER, "s1");
    CHECK_STR(history_texts(f, sub->id), "s1");
    CHECK_STR(history_texts(f, parent), "m1");
}

TEST(a_subagent_with_a_fork_point_inherits_up_to_it)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    append_ok(f, parent, ROLE_USER, "m1");
    const char *m2 = append_ok(f, parent, ROLE_USER, "m2");
    NewSession wanted = new_session();
    wanted.kind = SESSION_KIND_SUBAGENT;
    wanted.parent_id = CHARS(parent);
    CreateSessionResponse *before =
        CALL_OK(f, create_session, CreateSession,
                {.session = &wanted,
                 .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID,
                 .before_message_id = CHARS(m2)});
    CreateSessionResponse *at_head =
        CALL_OK(f, create_session, CreateSession,
                {.session = &wanted,
                 .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                 .at_head = true});
    append_ok(f, parent, ROLE_USER, "m3");
    CHECK_EQ(at_head->session->kind, SESSION_KIND_SUBAGENT);
    CHECK_STR(history_texts(f, before->session->id), "m1");
    CHECK_STR(history_texts(f, at_head->session->id), "m1 m2");
}

TEST(a_subagent_may_be_without_a_parent)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.kind = SESSION_KIND_SUBAGENT;
    Session *sub = create_ok(f, &wanted);
    CHECK_STR(sub->root_id, sub->id);
}

TEST(a_fork_point_needs_a_parent)
{
    const char *other;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&other);
    const char *m1 = append_ok(f, other, ROLE_USER, "m1");
    NewSession wanted = new_session();
    for (int kind = SESSION_KIND_PRIMARY; kind <= SESSION_KIND_SUBAGENT; kind++) {
        wanted.kind = (SessionKind)kind;
        CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT",
                   {.session = &wanted,
                    .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID,
                    .through_message_id = CHARS(m1)});
        CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT",
                   {.session = &wanted,
                    .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID,
                    .before_message_id = CHARS(m1)});
        CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT",
                   {.session = &wanted,
                    .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                    .at_head = true});
    }
}

TEST(a_fork_point_of_a_new_session_must_exist_in_its_parents_tree)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    const char *foreign = append_ok(f, session_ok(f), ROLE_USER, "m1");
    const struct {
        const char *through, *reason;
    } rows[] = {
        {foreign, "NOT_IN_TREE"},
        {UNKNOWN_ID, "MESSAGE_NOT_FOUND"},
        {"", "INVALID_ARGUMENT"},
        {"not-an-id", "INVALID_ARGUMENT"},
    };
    NewSession wanted = new_session();
    wanted.parent_id = CHARS(parent);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CALL_FAILS(f, create_session, CreateSession, rows[i].reason,
                   {.session = &wanted,
                    .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID,
                    .through_message_id = CHARS(rows[i].through)});
        CALL_FAILS(f, create_session, CreateSession, rows[i].reason,
                   {.session = &wanted,
                    .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID,
                    .before_message_id = CHARS(rows[i].through)});
    }
    CALL_FAILS(f, create_session, CreateSession, "INVALID_ARGUMENT",
               {.session = &wanted,
                .fork_point_case = CREATE_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                .at_head = false});
}

TEST(a_parent_must_exist)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.kind = SESSION_KIND_SUBAGENT;
    wanted.parent_id = UNKNOWN_ID;
    create_fails(f, "SESSION_NOT_FOUND", &wanted);
    wanted.parent_id = "01arz3ndektsv4rrffq69g5fav"; // not canonical
    create_fails(f, "INVALID_ARGUMENT", &wanted);
}

TEST(a_parent_may_be_deleted_or_archived)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    archive_ok(f, parent, true);
    CHECK_STR(get_ok(f, subagent_ok(f, parent))->parent_id, parent);
    archive_ok(f, parent, false);
    delete_ok(f, parent);
    CHECK_STR(get_ok(f, subagent_ok(f, parent))->parent_id, parent);
}

TEST(root_id_is_the_oldest_ancestor_at_creation)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    const char *fork = fork_ok(f, sub, NULL);
    CHECK_STR(get_ok(f, fork)->root_id, root);
    CHECK_STR(get_ok(f, subagent_ok(f, fork))->root_id, root);
}

static Session *create_with_slug(Fixture *f, const char *slug, SlugPolicy policy)
{
    NewSession wanted = new_session();
    wanted.slug = CHARS(slug);
    return CALL_OK(f, create_session, CreateSession, {.session = &wanted, .slug_policy = policy})
        ->session;
}

TEST(a_free_slug_may_be_had_twice)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK_STR(create_with_slug(f, "s", SLUG_POLICY_UNSPECIFIED)->slug, "s");
    CHECK_STR(create_with_slug(f, "s", SLUG_POLICY_FREE)->slug, "s");
}

TEST(a_unique_slug_is_refused_while_any_session_has_it)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *holder = create_with_slug(f, "s", SLUG_POLICY_UNIQUE)->id;
    delete_ok(f, holder);
    NewSession wanted = new_session();
    wanted.slug = "s";
    CALL_FAILS(f, create_session, CreateSession, "SLUG_TAKEN",
               {.session = &wanted, .slug_policy = SLUG_POLICY_UNIQUE});
    CHECK(strstr(f->status.message, holder));
    CHECK_STR(create_with_slug(f, "S", SLUG_POLICY_UNIQUE)->slug, "S");
    CHECK_STR(create_with_slug(f, "", SLUG_POLICY_UNIQUE)->slug, "");
    CHECK_STR(create_with_slug(f, "", SLUG_POLICY_UNIQUE)->slug, "");
    purge_ok(f, holder, false);
    CHECK_STR(create_with_slug(f, "s", SLUG_POLICY_UNIQUE)->slug, "s");
}

TEST(a_unique_suffix_is_added_until_the_slug_is_unique)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK_STR(create_with_slug(f, "s", SLUG_POLICY_UNIQUE_SUFFIX)->slug, "s");
    for (int n = 2; n <= 20; n++) {
        char slug[16];
        snprintf(slug, sizeof(slug), "s-%d", n);
        CHECK_STR(create_with_slug(f, "s", SLUG_POLICY_UNIQUE_SUFFIX)->slug, slug);
    }
    CHECK_STR(create_with_slug(f, "s-7", SLUG_POLICY_UNIQUE_SUFFIX)->slug, "s-7-2");
}

TEST(a_suffixed_slug_stays_within_the_limit_and_on_a_code_point)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    char slug[SLUG_BYTES_MAX + 1];
    memset(slug, 'a', sizeof(slug));
    memcpy(slug + SLUG_BYTES_MAX - 3, "\xE2\x82\xAC", 3); // a euro sign: cut as a whole
    slug[SLUG_BYTES_MAX] = '\0';
    CHECK_STR(create_with_slug(f, slug, SLUG_POLICY_UNIQUE_SUFFIX)->slug, slug);
    memcpy(slug + SLUG_BYTES_MAX - 3, "-2", 3);
    char whole[SLUG_BYTES_MAX + 1];
    memcpy(whole, slug, sizeof(slug));
    memcpy(whole + SLUG_BYTES_MAX - 3, "\xE2\x82\xAC", 4);
    CHECK_STR(create_with_slug(f, whole, SLUG_POLICY_UNIQUE_SUFFIX)->slug, slug);
}

TEST(an_external_id_is_unique_per_source)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External external = {.source = "pi", .id = "p1"},
             other_source = {.source = "hecate", .id = "p1"};
    NewSession wanted = new_session();
    wanted.external = &external;
    const char *holder = create_ok(f, &wanted)->id;
    delete_ok(f, holder);
    create_fails(f, "EXTERNAL_TAKEN", &wanted);
    CHECK(strstr(f->status.message, holder));
    wanted.external = &other_source;
    create_ok(f, &wanted);
    purge_ok(f, holder, false);
    wanted.external = &external;
    create_ok(f, &wanted);
}

TEST(an_external_id_needs_its_source_and_its_id)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    External no_id = {.source = "pi"}, no_source = {.id = "p1"};
    NewSession wanted = new_session();
    wanted.external = &no_id;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    wanted.external = &no_source;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
}

TEST(created_at_is_data_and_bounded)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.created_at = 1000;
    Session *old = create_ok(f, &wanted);
    CHECK_EQ(old->created_at, 1000);
    CHECK_EQ(old->last_active_at, 1000);
    CHECK_EQ(old->updated_at, f->now_ms);
    wanted.created_at = TIME_MS_MAX;
    CHECK_EQ(create_ok(f, &wanted)->last_active_at, TIME_MS_MAX);
    wanted.created_at = TIME_MS_MAX + 1;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
    wanted.created_at = -1;
    create_fails(f, "INVALID_ARGUMENT", &wanted);
}

typedef struct StringField {
    size_t offset;
    size_t bytes_max;
    bool is_json;
} StringField;

TEST(each_string_of_a_new_session_is_taken_at_its_limit_and_refused_past_it)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const StringField fields[] = {
        {offsetof(NewSession, slug), SLUG_BYTES_MAX, false},
        {offsetof(NewSession, title), TITLE_BYTES_MAX, false},
        {offsetof(NewSession, project_dir), PATH_BYTES_MAX, false},
        {offsetof(NewSession, parent_tool_use_id), STRING_BYTES_MAX, false},
        {offsetof(NewSession, user_name), STRING_BYTES_MAX, false},
        {offsetof(NewSession, account_id), STRING_BYTES_MAX, false},
        {offsetof(NewSession, project_id), STRING_BYTES_MAX, false},
        {offsetof(NewSession, workspace_id), STRING_BYTES_MAX, false},
        {offsetof(NewSession, role_name), STRING_BYTES_MAX, false},
        {offsetof(NewSession, execution), STRING_BYTES_MAX, false},
        {offsetof(NewSession, data_version), STRING_BYTES_MAX, false},
        {offsetof(NewSession, source_parent), STRING_BYTES_MAX, false},
        {offsetof(NewSession, metadata_json), METADATA_JSON_BYTES_MAX, true},
        {offsetof(NewSession, system_prompt), SYSTEM_PROMPT_BYTES_MAX, false},
        {offsetof(NewSession, data_json), SESSION_DATA_JSON_BYTES_MAX, true},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        NewSession wanted = new_session();
        char **field = (char **)(void *)((char *)&wanted + fields[i].offset);
        size_t size = fields[i].bytes_max;
        char *fits = fields[i].is_json ? json_of_size(size) : text_of_size(size);
        char *too_long = fields[i].is_json ? json_of_size(size + 1) : text_of_size(size + 1);
        *field = fits;
        create_ok(f, &wanted);
        *field = too_long;
        create_fails(f, "TOO_LONG", &wanted);
        *field = "\xFF";
        create_fails(f, "INVALID_UTF8", &wanted);
        *field = "{\"a\":";
        if (fields[i].is_json) create_fails(f, "INVALID_JSON", &wanted);
        free(fits);
        free(too_long);
    }
}

TEST(a_session_with_every_field_at_its_limit_reads_back_whole)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.title = text_of_size(TITLE_BYTES_MAX);
    wanted.project_dir = text_of_size(PATH_BYTES_MAX);
    wanted.metadata_json = json_of_size(METADATA_JSON_BYTES_MAX);
    wanted.system_prompt = text_of_size(SYSTEM_PROMPT_BYTES_MAX);
    wanted.data_json = json_of_size(SESSION_DATA_JSON_BYTES_MAX);
    Session *created = create_ok(f, &wanted);
    Session *read = get_ok(f, created->id);
    CHECK_STR(created->metadata_json, wanted.metadata_json);
    CHECK_STR(read->title, wanted.title);
    CHECK_STR(read->project_dir, wanted.project_dir);
    CHECK(strcmp(read->system_prompt, wanted.system_prompt) == 0);
    CHECK(strcmp(read->data_json, wanted.data_json) == 0);
    ListSessionsResponse *list =
        CALL_OK(f, list_sessions, ListSessions, {.project_dir = wanted.project_dir});
    CHECK_EQ(list->n_sessions, 1);
    CHECK_STR(list->sessions[0]->system_prompt, "");
    CHECK_STR(list->sessions[0]->metadata_json, wanted.metadata_json);
    free(wanted.title);
    free(wanted.project_dir);
    free(wanted.metadata_json);
    free(wanted.system_prompt);
    free(wanted.data_json);
}

TEST(get_session_reads_deleted_ones_and_refuses_what_is_no_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *message = append_ok(f, session, ROLE_USER, "m1");
    delete_ok(f, session);
    CHECK_EQ(get_ok(f, session)->deleted_at, f->now_ms);
    CALL_FAILS(f, get_session, GetSession, "INVALID_ARGUMENT", {.session_id = ""});
    CALL_FAILS(f, get_session, GetSession, "INVALID_ARGUMENT", {.session_id = "x"});
    CALL_FAILS(f, get_session, GetSession, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, get_session, GetSession, "SESSION_NOT_FOUND", {.session_id = CHARS(message)});
}
