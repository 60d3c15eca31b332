// RenameSession, UpdateSession, SoftDeleteSession and RestoreSession.

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

static Session *rename_ok(Fixture *f, const char *session, const char *slug, SlugPolicy policy)
{
    return CALL_OK(f, rename_session, RenameSession,
                   {.session_id = CHARS(session), .slug = CHARS(slug), .slug_policy = policy})
        ->session;
}

static void rename_fails(Fixture *f, const char *reason, const char *session, const char *slug)
{
    CALL_FAILS(
        f, rename_session, RenameSession, reason,
        {.session_id = CHARS(session), .slug = CHARS(slug), .slug_policy = SLUG_POLICY_UNIQUE});
}

static UpdateSessionRequest update_of(const char *session, SessionField *field)
{
    return (UpdateSessionRequest){.session_id = CHARS(session), .n_mask = 1, .mask = field};
}

TEST(rename_gives_a_new_slug_and_moves_updated_at)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    f->now_ms += 1000;
    Session *renamed = rename_ok(f, s, "new", SLUG_POLICY_UNSPECIFIED);
    CHECK_STR(renamed->slug, "new");
    CHECK_EQ(renamed->updated_at, f->now_ms);
    CHECK_EQ(renamed->last_active_at, f->now_ms - 1000);
    CHECK_STR(get_ok(f, s)->slug, "new");
}

TEST(rename_to_nothing_clears_the_slug)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    CHECK_STR(rename_ok(f, s, "", SLUG_POLICY_UNIQUE)->slug, "");
    ListSessionsRequest all = {.limit = 0};
    CHECK_STR(listed_slugs(f, all), "");
    CHECK_EQ(CALL_OK(f, resolve_session, ResolveSession,
                     {.by_case = RESOLVE_SESSION_REQUEST__BY_SLUG, .slug = "s"})
                 ->n_sessions,
             0);
}

TEST(rename_to_the_same_changes_nothing)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    slug_session_ok(f, "s"); // another holder does not matter
    Session *before = get_ok(f, s);
    f->now_ms += 1000;
    rename_ok(f, s, "s", SLUG_POLICY_UNIQUE);
    rename_ok(f, s, "s", SLUG_POLICY_UNIQUE_SUFFIX);
    Session *after = get_ok(f, s);
    CHECK_STR(after->slug, "s");
    CHECK_EQ(after->updated_at, before->updated_at);
    CHECK_EQ(after->last_event_sequence, before->last_event_sequence);
}

TEST(rename_follows_the_slug_policy)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *holder = slug_session_ok(f, "s"), *other = slug_session_ok(f, "t");
    delete_ok(f, holder);
    rename_fails(f, "SLUG_TAKEN", other, "s");
    CHECK(strstr(f->status.message, holder));
    CHECK_STR(get_ok(f, other)->slug, "t");
    CHECK_STR(rename_ok(f, other, "s", SLUG_POLICY_UNIQUE_SUFFIX)->slug, "s-2");
    CHECK_STR(rename_ok(f, other, "s", SLUG_POLICY_FREE)->slug, "s");
    CHECK_STR(rename_ok(f, other, "u", SLUG_POLICY_UNIQUE)->slug, "u");
}

TEST(rename_with_a_suffix_that_is_its_own_already_changes_nothing)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    slug_session_ok(f, "s");
    const char *other = slug_session_ok(f, "t");
    Session *first = rename_ok(f, other, "s", SLUG_POLICY_UNIQUE_SUFFIX);
    f->now_ms += 1000;
    Session *again = rename_ok(f, other, "s", SLUG_POLICY_UNIQUE_SUFFIX);
    CHECK_STR(again->slug, "s-2");
    CHECK_EQ(again->updated_at, first->updated_at);
    CHECK_EQ(again->last_event_sequence, first->last_event_sequence);
}

TEST(rename_refuses_missing_deleted_and_archived_sessions)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    rename_fails(f, "SESSION_NOT_FOUND", UNKNOWN_ID, "x");
    rename_fails(f, "INVALID_ARGUMENT", "", "x");
    archive_ok(f, s, true);
    rename_fails(f, "SESSION_ARCHIVED", s, "x");
    archive_ok(f, s, false);
    delete_ok(f, s);
    rename_fails(f, "SESSION_DELETED", s, "x");
}

TEST(a_slug_is_taken_at_its_limit_and_refused_past_it)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    char *fits = text_of_size(SLUG_BYTES_MAX), *too_long = text_of_size(SLUG_BYTES_MAX + 1);
    CHECK_STR(rename_ok(f, s, fits, SLUG_POLICY_FREE)->slug, fits);
    rename_fails(f, "TOO_LONG", s, too_long);
    rename_fails(f, "INVALID_UTF8", s, "\xC3");
    free(fits);
    free(too_long);
}

typedef struct UpdateField {
    SessionField field;
    size_t request_offset, session_offset;
    size_t bytes_max;
    bool is_json;
} UpdateField;

#define UPDATE_FIELD(constant, name, bytes_max, is_json)                                           \
    {                                                                                              \
        SESSION_FIELD_##constant, offsetof(UpdateSessionRequest, name), offsetof(Session, name),   \
            bytes_max, is_json                                                                     \
    }

static const UpdateField UPDATE_FIELDS[] = {
    UPDATE_FIELD(TITLE, title, TITLE_BYTES_MAX, false),
    UPDATE_FIELD(SYSTEM_PROMPT, system_prompt, SYSTEM_PROMPT_BYTES_MAX, false),
    UPDATE_FIELD(USER_NAME, user_name, STRING_BYTES_MAX, false),
    UPDATE_FIELD(ROLE_NAME, role_name, STRING_BYTES_MAX, false),
    UPDATE_FIELD(EXECUTION, execution, STRING_BYTES_MAX, false),
    UPDATE_FIELD(ACCOUNT_ID, account_id, STRING_BYTES_MAX, false),
    UPDATE_FIELD(PROJECT_ID, project_id, STRING_BYTES_MAX, false),
    UPDATE_FIELD(WORKSPACE_ID, workspace_id, STRING_BYTES_MAX, false),
    UPDATE_FIELD(METADATA_JSON, metadata_json, METADATA_JSON_BYTES_MAX, true),
    UPDATE_FIELD(DATA_JSON, data_json, SESSION_DATA_JSON_BYTES_MAX, true),
};
enum { UPDATE_FIELD_COUNT = sizeof(UPDATE_FIELDS) / sizeof(*UPDATE_FIELDS) };

static char **request_string(UpdateSessionRequest *request, const UpdateField *field)
{
    return (char **)(void *)((char *)request + field->request_offset);
}

static const char *session_string(const Session *session, const UpdateField *field)
{
    return *(char *const *)(const void *)((const char *)session + field->session_offset);
}

TEST(update_sets_and_clears_the_field_that_the_mask_names_and_no_other)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    for (size_t i = 0; i < UPDATE_FIELD_COUNT; i++) {
        SessionField mask = UPDATE_FIELDS[i].field;
        UpdateSessionRequest request = update_of(s, &mask);
        for (size_t j = 0; j < UPDATE_FIELD_COUNT; j++) {
            *request_string(&request, &UPDATE_FIELDS[j]) = "\"set\"";
        }
        CALL_OK(f, update_session, UpdateSession, request);
        Session *read = get_ok(f, s);
        for (size_t j = 0; j < UPDATE_FIELD_COUNT; j++) {
            CHECK_STR(session_string(read, &UPDATE_FIELDS[j]), j == i ? "\"set\"" : "");
        }
        *request_string(&request, &UPDATE_FIELDS[i]) = "";
        CALL_OK(f, update_session, UpdateSession, request);
        CHECK_STR(session_string(get_ok(f, s), &UPDATE_FIELDS[i]), "");
    }
}

TEST(each_updated_string_is_taken_at_its_limit_and_refused_past_it)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    for (size_t i = 0; i < UPDATE_FIELD_COUNT; i++) {
        const UpdateField *field = &UPDATE_FIELDS[i];
        SessionField mask = field->field;
        UpdateSessionRequest request = update_of(s, &mask);
        size_t size = field->bytes_max;
        char *fits = field->is_json ? json_of_size(size) : text_of_size(size);
        char *too_long = field->is_json ? json_of_size(size + 1) : text_of_size(size + 1);
        *request_string(&request, field) = fits;
        CALL_OK(f, update_session, UpdateSession, request);
        CHECK(strcmp(session_string(get_ok(f, s), field), fits) == 0);
        *request_string(&request, field) = too_long;
        CALL_FAILS(f, update_session, UpdateSession, "TOO_LONG", request);
        *request_string(&request, field) = "\xED\xA0\x80";
        CALL_FAILS(f, update_session, UpdateSession, "INVALID_UTF8", request);
        *request_string(&request, field) = "{";
        if (field->is_json) {
            CALL_FAILS(f, update_session, UpdateSession, "INVALID_JSON", request);
        }
        free(fits);
        free(too_long);
    }
}

TEST(a_large_field_that_is_cleared_gives_its_rows_back)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    uint64_t rows = table_rows(f, "sessions");
    SessionField mask = SESSION_FIELD_SYSTEM_PROMPT;
    UpdateSessionRequest request = update_of(s, &mask);
    request.system_prompt = text_of_size(SYSTEM_PROMPT_BYTES_MAX);
    CALL_OK(f, update_session, UpdateSession, request);
    CHECK(table_rows(f, "sessions") > rows + 100);
    free(request.system_prompt);
    request.system_prompt = "";
    CALL_OK(f, update_session, UpdateSession, request);
    CHECK_EQ(table_rows(f, "sessions"), rows);
}

TEST(update_sets_several_fields_at_once)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SessionField mask[] = {SESSION_FIELD_TITLE, SESSION_FIELD_USER_NAME, SESSION_FIELD_TITLE};
    f->now_ms += 1000;
    UpdateSessionResponse *updated = CALL_OK(f, update_session, UpdateSession,
                                             {.session_id = CHARS(s),
                                              .n_mask = 3,
                                              .mask = mask,
                                              .title = "t",
                                              .user_name = "u",
                                              .role_name = "ignored"});
    CHECK_STR(updated->session->title, "t");
    CHECK_STR(updated->session->user_name, "u");
    CHECK_STR(updated->session->role_name, "");
    CHECK_EQ(updated->session->updated_at, f->now_ms);
    CHECK_EQ(updated->session->last_active_at, f->now_ms - 1000);
}

TEST(data_is_updated_together_with_its_version)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SessionField mask = SESSION_FIELD_DATA_JSON;
    UpdateSessionRequest request = update_of(s, &mask);
    request.data_json = "[1]";
    request.data_version = "v2";
    UpdateSessionResponse *updated = CALL_OK(f, update_session, UpdateSession, request);
    CHECK_STR(updated->session->data_json, "");
    CHECK_STR(updated->session->data_version, "v2");
    CHECK_STR(get_ok(f, s)->data_json, "[1]");
    request.data_version = "";
    CALL_OK(f, update_session, UpdateSession, request);
    CHECK_STR(get_ok(f, s)->data_version, "");
}

TEST(an_updated_model_needs_both_names)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    ModelRef model = {.provider = "openai", .name = "model-2"}, no_name = {.provider = "openai"},
             no_provider = {.name = "model-2"};
    SessionField mask = SESSION_FIELD_MODEL;
    UpdateSessionRequest request = update_of(s, &mask);
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    request.model = &no_name;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    request.model = &no_provider;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    CHECK_STR(get_ok(f, s)->model->provider, "anthropic");
    request.model = &model;
    CALL_OK(f, update_session, UpdateSession, request);
    CHECK_STR(get_ok(f, s)->model->provider, "openai");
    CHECK_STR(get_ok(f, s)->model->name, "model-2");
}

TEST(update_needs_a_mask_without_unknown_fields)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", {.session_id = CHARS(s)});
    SessionField bad[] = {SESSION_FIELD_TITLE, SESSION_FIELD_UNSPECIFIED};
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(s), .n_mask = 2, .mask = bad, .title = "t"});
    bad[1] = (SessionField)99;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(s), .n_mask = 2, .mask = bad, .title = "t"});
    CHECK_STR(get_ok(f, s)->title, "");
}

TEST(a_mask_is_taken_at_its_limit_and_refused_past_it)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SessionField mask[UPDATE_MASK_COUNT_MAX + 1];
    for (size_t i = 0; i < UPDATE_MASK_COUNT_MAX + 1; i++)
        mask[i] = SESSION_FIELD_TITLE;
    CALL_OK(f, update_session, UpdateSession,
            {.session_id = CHARS(s), .n_mask = UPDATE_MASK_COUNT_MAX, .mask = mask});
    CALL_FAILS(f, update_session, UpdateSession, "TOO_LONG",
               {.session_id = CHARS(s), .n_mask = UPDATE_MASK_COUNT_MAX + 1, .mask = mask});
}

TEST(update_refuses_missing_and_deleted_sessions)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SessionField mask = SESSION_FIELD_TITLE;
    CALL_FAILS(f, update_session, UpdateSession, "SESSION_NOT_FOUND", update_of(UNKNOWN_ID, &mask));
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", update_of("", &mask));
    delete_ok(f, s);
    CALL_FAILS(f, update_session, UpdateSession, "SESSION_DELETED", update_of(s, &mask));
    mask = SESSION_FIELD_ARCHIVED;
    CALL_FAILS(f, update_session, UpdateSession, "SESSION_DELETED", update_of(s, &mask));
}

static Session *set_status(Fixture *f, const char *session, SessionStatus status, int64_t until)
{
    SessionField mask = SESSION_FIELD_STATUS;
    UpdateSessionRequest request = update_of(session, &mask);
    request.status = status;
    request.status_until = until;
    return CALL_OK(f, update_session, UpdateSession, request)->session;
}

TEST(a_status_without_an_end_stays)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CHECK_EQ(set_status(f, s, SESSION_STATUS_BUSY, 0)->status, SESSION_STATUS_BUSY);
    f->now_ms += INT64_C(1000) * 1000 * 1000;
    CHECK_EQ(get_ok(f, s)->status, SESSION_STATUS_BUSY);
    CHECK_EQ(set_status(f, s, SESSION_STATUS_UNSPECIFIED, 0)->status, SESSION_STATUS_IDLE);
}

TEST(a_status_past_its_end_reads_idle_everywhere)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    int64_t until = f->now_ms + 1000;
    Session *set = set_status(f, s, SESSION_STATUS_RETRY, until);
    CHECK_EQ(set->status, SESSION_STATUS_RETRY);
    CHECK_EQ(set->status_until, until);
    f->now_ms = until - 1;
    CHECK_EQ(get_ok(f, s)->status, SESSION_STATUS_RETRY);
    f->now_ms = until + 1;
    Session *read = get_ok(f, s);
    CHECK_EQ(read->status, SESSION_STATUS_IDLE);
    CHECK_EQ(read->status_until, 0);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.limit = 1})->sessions[0]->status,
             SESSION_STATUS_IDLE);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.status = SESSION_STATUS_RETRY})->n_sessions,
             0);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.status = SESSION_STATUS_IDLE})->n_sessions,
             1);
    append_ok(f, s, ROLE_USER, "m1");
    CHECK_EQ(get_ok(f, s)->status, SESSION_STATUS_IDLE);
    CHECK_EQ(set_status(f, s, SESSION_STATUS_BUSY, until + 1000)->status, SESSION_STATUS_BUSY);
}

TEST(status_until_is_bounded)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CHECK_EQ(set_status(f, s, SESSION_STATUS_BUSY, TIME_MS_MAX)->status_until, TIME_MS_MAX);
    SessionField mask = SESSION_FIELD_STATUS;
    UpdateSessionRequest request = update_of(s, &mask);
    request.status_until = TIME_MS_MAX + 1;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    request.status_until = -1;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    request.status_until = 0;
    request.status = (SessionStatus)9;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
}

TEST(an_archived_session_accepts_only_a_mask_that_holds_archived)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    int64_t archived_at = archive_ok(f, s, true)->archived_at;
    CHECK_EQ(archived_at, f->now_ms);
    f->now_ms += 1000;
    CHECK_EQ(archive_ok(f, s, true)->archived_at, archived_at);
    SessionField title = SESSION_FIELD_TITLE;
    CALL_FAILS(f, update_session, UpdateSession, "SESSION_ARCHIVED", update_of(s, &title));
    SessionField both[] = {SESSION_FIELD_TITLE, SESSION_FIELD_ARCHIVED};
    Session *opened = CALL_OK(f, update_session, UpdateSession,
                              {.session_id = CHARS(s), .n_mask = 2, .mask = both, .title = "t"})
                          ->session;
    CHECK_EQ(opened->archived_at, 0);
    CHECK_STR(opened->title, "t");
    append_ok(f, s, ROLE_USER, "m1");
}

TEST(an_archived_session_is_read_only_and_still_listed)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    append_ok(f, s, ROLE_USER, "m1");
    archive_ok(f, s, true);
    CALL_FAILS(f, append_message, AppendMessage, "SESSION_ARCHIVED",
               {.session_id = CHARS(s), .message = text_message(f, ROLE_USER, "m2")});
    CHECK_STR(history_texts(f, s), "m1");
    ListSessionsRequest all = {.limit = 0};
    CHECK_STR(listed_slugs(f, all), "s");
}

TEST(soft_delete_hides_from_listings_and_refuses_writes)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    append_ok(f, s, ROLE_USER, "m1");
    f->now_ms += 1000;
    Session *deleted = delete_ok(f, s);
    CHECK_EQ(deleted->deleted_at, f->now_ms);
    CHECK_EQ(deleted->updated_at, f->now_ms);
    ListSessionsRequest all = {.limit = 0};
    CHECK_STR(listed_slugs(f, all), "");
    CALL_FAILS(f, append_message, AppendMessage, "SESSION_DELETED",
               {.session_id = CHARS(s), .message = text_message(f, ROLE_USER, "m2")});
    CHECK_STR(history_texts(f, s), "m1");
    CHECK_STR(get_ok(f, s)->slug, "s");
}

TEST(a_second_soft_delete_changes_nothing)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Session *first = delete_ok(f, s);
    f->now_ms += 1000;
    Session *second = delete_ok(f, s);
    CHECK_EQ(second->deleted_at, first->deleted_at);
    CHECK_EQ(second->updated_at, first->updated_at);
    CHECK_EQ(second->last_event_sequence, first->last_event_sequence);
}

TEST(restore_brings_a_session_back)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *s = slug_session_ok(f, "s");
    append_ok(f, s, ROLE_USER, "m1");
    delete_ok(f, s);
    f->now_ms += 1000;
    Session *restored = restore_ok(f, s);
    CHECK_EQ(restored->deleted_at, 0);
    CHECK_EQ(restored->updated_at, f->now_ms);
    ListSessionsRequest all = {.limit = 0};
    CHECK_STR(listed_slugs(f, all), "s");
    all.deleted = DELETED_FILTER_ONLY;
    CHECK_STR(listed_slugs(f, all), "");
    append_ok(f, s, ROLE_USER, "m2");
    CHECK_STR(history_texts(f, s), "m1 m2");
}

TEST(restore_of_a_session_that_is_not_deleted_changes_nothing)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Session *before = get_ok(f, s);
    f->now_ms += 1000;
    Session *after = restore_ok(f, s);
    CHECK_EQ(after->updated_at, before->updated_at);
    CHECK_EQ(after->last_event_sequence, before->last_event_sequence);
}

TEST(deleting_a_session_leaves_its_children_alone)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *sub = subagent_ok(f, s);
    delete_ok(f, s);
    CHECK_EQ(get_ok(f, sub)->deleted_at, 0);
    append_ok(f, sub, ROLE_USER, "s1");
}

TEST(soft_delete_and_restore_refuse_what_is_no_session)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_FAILS(f, soft_delete_session, SoftDeleteSession, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, soft_delete_session, SoftDeleteSession, "INVALID_ARGUMENT", {.session_id = "x"});
    CALL_FAILS(f, restore_session, RestoreSession, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, restore_session, RestoreSession, "INVALID_ARGUMENT", {.session_id = ""});
}
