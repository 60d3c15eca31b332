// Todos: a session's task list.

#include "base/limits.h"
#include "entries.h"

static Todos *replace(Fixture *f, const char *session, size_t count, TodoItem **items)
{
    return CALL_OK(f, replace_session_todos, ReplaceSessionTodos,
                   {.session_id = CHARS(session), .n_items = count, .items = items})
        ->todos;
}

static Todos *todos_of(Fixture *f, const char *session)
{
    return CALL_OK(f, get_session_todos, GetSessionTodos, {.session_id = CHARS(session)})->todos;
}

TEST(todos_are_empty_before_any_were_stored)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Todos *todos = todos_of(f, session);
    CHECK_STR(todos->session_id, session);
    CHECK_EQ(todos->n_items, 0);
    CHECK_EQ(todos->updated_at, 0);
    CHECK_EQ(todos->summary->total, 0);
}

TEST(todos_are_replaced_as_a_whole_and_counted)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    TodoItem list[] = {
        {.content = "a", .status = "pending", .priority = "high"},
        {.content = "b", .status = "in_progress"},
        {.content = "c", .status = "completed"},
        {.content = "d", .status = "cancelled"},
        {.content = "e", .status = "of my own"},
        {.content = "", .status = ""},
    };
    TodoItem *items[6];
    for (size_t i = 0; i < 6; i++)
        items[i] = &list[i];
    Todos *answered = replace(f, session, 6, items);
    Todos *read = todos_of(f, session);
    Todos *both[] = {answered, read};
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(both[i]->session_id, session);
        CHECK_EQ(both[i]->updated_at, f->now_ms);
        CHECK_EQ(both[i]->n_items, 6);
        CHECK_STR(both[i]->items[0]->priority, "high");
        CHECK_STR(both[i]->items[4]->status, "of my own");
        CHECK_EQ(both[i]->summary->total, 6);
        CHECK_EQ(both[i]->summary->incomplete, 4);
        CHECK_EQ(both[i]->summary->in_progress, 1);
        CHECK_EQ(both[i]->summary->completed, 1);
        CHECK_EQ(both[i]->summary->cancelled, 1);
    }
    f->now_ms += 1000;
    replace(f, session, 1, items + 2);
    read = todos_of(f, session);
    CHECK_EQ(read->n_items, 1);
    CHECK_STR(read->items[0]->content, "c");
    CHECK_EQ(read->updated_at, f->now_ms);
    CHECK_EQ(replace(f, session, 0, NULL)->n_items, 0);
    CHECK_EQ(todos_of(f, session)->n_items, 0);
    CHECK_EQ(todos_of(f, session)->updated_at, f->now_ms);
}

TEST(todos_are_limited_in_number)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    TodoItem item = {.content = filled(f, 't', TODO_CONTENT_BYTES_MAX), .status = "pending"};
    TodoItem *items[TODO_COUNT_MAX + 1];
    for (size_t i = 0; i <= TODO_COUNT_MAX; i++)
        items[i] = &item;
    CHECK_EQ(replace(f, session, TODO_COUNT_MAX, items)->n_items, TODO_COUNT_MAX);
    Todos *read = todos_of(f, session);
    CHECK_EQ(read->summary->total, TODO_COUNT_MAX);
    CHECK_STR(read->items[TODO_COUNT_MAX - 1]->content, item.content);
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, "TOO_LONG",
               {.session_id = CHARS(session), .n_items = TODO_COUNT_MAX + 1, .items = items});
    CHECK(strstr(f->status.message, "items"));
    replace(f, session, 1, items);
    CHECK_EQ(todos_of(f, session)->n_items, 1);
    CHECK(table_rows(f, "todos") <= 2);
}

TEST(todos_calls_name_sessions_that_are_missing_or_closed)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ReplaceSessionTodosRequest request = {.session_id = UNKNOWN_ID};
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, "SESSION_NOT_FOUND", request);
    CALL_FAILS(f, get_session_todos, GetSessionTodos, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID});
    request.session_id = "";
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "session_id"));
    CALL_FAILS(f, get_session_todos, GetSessionTodos, "INVALID_ARGUMENT", {.session_id = ""});
    request.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, "SESSION_ARCHIVED", request);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, replace_session_todos, ReplaceSessionTodos, "SESSION_DELETED", request);
    CHECK_EQ(todos_of(f, session)->n_items, 0);
    purge_ok(f, session, /* keep_for_forks= */ false);
    CALL_FAILS(f, get_session_todos, GetSessionTodos, "SESSION_NOT_FOUND",
               {.session_id = CHARS(session)});
}

TEST(todos_replay_returns_the_list_as_it_is_now)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    TodoItem first = {.content = "first"}, second = {.content = "second"};
    TodoItem *items[] = {&first};
    TodoItem *others[] = {&second};
    ReplaceSessionTodosRequest request = {
        .session_id = CHARS(session), .n_items = 1, .items = items};
    CALL_OK_WITH(f, "op", replace_session_todos, ReplaceSessionTodos, request);
    replace(f, session, 1, others);
    uint64_t newest = newest_sequence(f);
    Todos *again =
        CALL_OK_WITH(f, "op", replace_session_todos, ReplaceSessionTodos, request)->todos;
    CHECK_STR(again->items[0]->content, "second");
    CHECK_EQ(newest_sequence(f), newest);
    request.items = others;
    CALL_FAILS_WITH(f, "op", replace_session_todos, ReplaceSessionTodos, "OPERATION_ID_REUSED",
                    request);
}
