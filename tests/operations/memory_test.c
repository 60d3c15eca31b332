// Memories: facts that a session remembers.

#include "base/limits.h"
#include "entries.h"

static Memory *remember(Fixture *f, const char *session, NewMemory memory)
{
    return CALL_OK(f, remember_session_memory, RememberSessionMemory,
                   {.session_id = CHARS(session), .memory = &memory})
        ->memory;
}

static const char *listed(Fixture *f, const char *session)
{
    ListSessionMemoriesResponse *page =
        CALL_OK(f, list_session_memories, ListSessionMemories, {.session_id = CHARS(session)});
    char *joined = fixture_alloc(f, 1024);
    for (size_t i = 0; i < page->n_memories; i++) {
        if (i) strncat(joined, " ", 2);
        strncat(joined, page->memories[i]->content, 32);
    }
    return joined;
}

static Memory *forget(Fixture *f, const char *session, const char *memory)
{
    return CALL_OK(f, forget_session_memory, ForgetSessionMemory,
                   {.session_id = CHARS(session), .memory_id = CHARS(memory)})
        ->memory;
}

TEST(memory_comes_back_with_every_field)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Memory *memory = remember(f, session,
                              (NewMemory){
                                  .scope = MEMORY_SCOPE_SESSION,
                                  .title = "t",
                                  .body = "b",
                                  .content = "c",
                                  .source = "s",
                                  .path = "/p",
                              });
    CHECK_EQ(strlen(memory->id), 26);
    CHECK_STR(memory->session_id, session);
    CHECK_EQ(memory->scope, MEMORY_SCOPE_SESSION);
    CHECK_STR(memory->title, "t");
    CHECK_STR(memory->body, "b");
    CHECK_STR(memory->content, "c");
    CHECK_STR(memory->source, "s");
    CHECK_STR(memory->path, "/p");
    CHECK_EQ(memory->created_at, f->now_ms);
    CHECK_EQ(memory->updated_at, f->now_ms);
    CHECK_EQ(memory->deleted_at, 0);
    CHECK_STR(listed(f, session), "c");
}

TEST(memory_content_is_trimmed_of_unicode_white_space_and_required)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Memory *memory = remember(f, session, (NewMemory){.content = " \t\n a fact　\xc2\xa0\r\n"});
    CHECK_STR(memory->content, "a fact");
    CHECK_EQ(memory->scope, MEMORY_SCOPE_SESSION);
    const char *empty[] = {"", " ", "\t\r\n", "\xc2\xa0　"};
    for (size_t i = 0; i < 4; i++) {
        CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "INVALID_ARGUMENT",
                   {.session_id = CHARS(session),
                    .memory = &(NewMemory){.content = CHARS(empty[i])}});
        CHECK(strstr(f->status.message, "memory.content"));
    }
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "INVALID_ARGUMENT",
               {.session_id = CHARS(session)});
    CHECK_STR(listed(f, session), "a fact");
}

TEST(memory_scope_is_the_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    MemoryScope scopes[] = {MEMORY_SCOPE_PROJECT, MEMORY_SCOPE_GLOBAL};
    for (size_t i = 0; i < 2; i++) {
        NewMemory memory = {.scope = scopes[i], .content = "x"};
        CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "INVALID_ARGUMENT",
                   {.session_id = CHARS(session), .memory = &memory});
        CHECK(strstr(f->status.message, "scope"));
    }
}

TEST(memory_listing_is_oldest_first_without_what_was_forgotten)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *ids[3];
    const char *names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        ids[i] = remember(f, session, (NewMemory){.content = CHARS(names[i])})->id;
    }
    CHECK_STR(listed(f, session), "a b c");
    CHECK_STR(listed(f, session_ok(f)), "");
    f->now_ms += 1000;
    Memory *forgotten = forget(f, session, ids[1]);
    CHECK_STR(forgotten->id, ids[1]);
    CHECK_STR(forgotten->content, "b");
    CHECK_EQ(forgotten->deleted_at, f->now_ms);
    CHECK_EQ(forgotten->updated_at, f->now_ms);
    CHECK_EQ(forgotten->created_at, f->now_ms - 1000);
    CHECK_STR(listed(f, session), "a c");
}

TEST(memory_that_is_not_there_cannot_be_forgotten)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *other = session_ok(f);
    const char *id = remember(f, session, (NewMemory){.content = "x"})->id;
    ForgetSessionMemoryRequest request = {.session_id = CHARS(other), .memory_id = CHARS(id)};
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "MEMORY_NOT_FOUND", request);
    CHECK_EQ(f->status.code, STATUS_NOT_FOUND);
    request = (ForgetSessionMemoryRequest){.session_id = CHARS(session), .memory_id = UNKNOWN_ID};
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "MEMORY_NOT_FOUND", request);
    request.memory_id = "";
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "memory_id"));
    request.memory_id = CHARS(id);
    CALL_OK(f, forget_session_memory, ForgetSessionMemory, request);
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "MEMORY_NOT_FOUND", request);
}

TEST(memory_calls_name_sessions_that_are_missing_or_closed)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMemory memory = {.content = "x"};
    const char *id = remember(f, session, memory)->id;
    RememberSessionMemoryRequest request = {.session_id = UNKNOWN_ID, .memory = &memory};
    ForgetSessionMemoryRequest forgets = {.session_id = UNKNOWN_ID, .memory_id = CHARS(id)};
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "SESSION_NOT_FOUND", request);
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "SESSION_NOT_FOUND", forgets);
    CALL_FAILS(f, list_session_memories, ListSessionMemories, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID});
    request.session_id = "";
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "session_id"));
    CALL_FAILS(f, list_session_memories, ListSessionMemories, "INVALID_ARGUMENT",
               {.session_id = ""});
    request.session_id = forgets.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "SESSION_ARCHIVED", request);
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "SESSION_ARCHIVED", forgets);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, remember_session_memory, RememberSessionMemory, "SESSION_DELETED", request);
    CALL_FAILS(f, forget_session_memory, ForgetSessionMemory, "SESSION_DELETED", forgets);
    CHECK_STR(listed(f, session), "x");
}

TEST(memory_listing_pages_by_limit_and_bytes)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t i = 0; i < 7; i++) {
        char *content = filled(f, 'm', 3000);
        content[0] = (char)('a' + i);
        const char *id = remember(f, session, (NewMemory){.content = content})->id;
        if (i == 3) forget(f, session, id);
    }
    ListSessionMemoriesRequest requests[] = {
        {.session_id = CHARS(session), .limit = 1},
        {.session_id = CHARS(session), .limit = 4},
        {.session_id = CHARS(session), .page_bytes = 8000},
        {.session_id = CHARS(session), .page_bytes = 1},
    };
    for (size_t i = 0; i < 4; i++) {
        char order[8] = "";
        do {
            ListSessionMemoriesResponse *page =
                CALL_OK(f, list_session_memories, ListSessionMemories, requests[i]);
            for (size_t j = 0; j < page->n_memories; j++) {
                strncat(order, page->memories[j]->content, 1);
            }
            requests[i].cursor = page->next_cursor;
        } while (*requests[i].cursor);
        CHECK_STR(order, "abcefg");
    }
    CALL_FAILS(f, list_session_memories, ListSessionMemories, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = "x"});
}

TEST(memory_of_the_largest_size_round_trips)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMemory memory = {
        .content = filled(f, 'c', MEMORY_CONTENT_BYTES_MAX),
        .body = filled(f, 'b', MEMORY_CONTENT_BYTES_MAX),
    };
    const char *id = remember(f, session, memory)->id;
    remember(f, session, (NewMemory){.content = "after"});
    ListSessionMemoriesResponse *page =
        CALL_OK(f, list_session_memories, ListSessionMemories, {.session_id = CHARS(session)});
    CHECK_EQ(page->n_memories, 2);
    CHECK_STR(page->memories[0]->content, memory.content);
    CHECK_STR(page->memories[0]->body, memory.body);
    CHECK_STR(page->memories[1]->content, "after");
    CHECK_STR(forget(f, session, id)->body, memory.body);
    CHECK_STR(listed(f, session), "after");
}

TEST(memory_replays_return_the_record_as_it_is_now)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMemory memory = {.content = "x"};
    RememberSessionMemoryRequest request = {.session_id = CHARS(session), .memory = &memory};
    Memory *first =
        CALL_OK_WITH(f, "remember", remember_session_memory, RememberSessionMemory, request)
            ->memory;
    Memory *again =
        CALL_OK_WITH(f, "remember", remember_session_memory, RememberSessionMemory, request)
            ->memory;
    CHECK_STR(again->id, first->id);
    CHECK_STR(again->content, "x");
    CHECK_STR(listed(f, session), "x");
    ForgetSessionMemoryRequest forgets = {.session_id = CHARS(session),
                                          .memory_id = CHARS(first->id)};
    for (int i = 0; i < 2; i++) {
        CHECK(CALL_OK_WITH(f, "forget", forget_session_memory, ForgetSessionMemory, forgets)
                  ->memory->deleted_at != 0);
    }
    again = CALL_OK_WITH(f, "remember", remember_session_memory, RememberSessionMemory, request)
                ->memory;
    CHECK_STR(again->id, first->id);
    CHECK_EQ(again->deleted_at, f->now_ms);
    memory.content = "y";
    CALL_FAILS_WITH(f, "remember", remember_session_memory, RememberSessionMemory,
                    "OPERATION_ID_REUSED", request);
}
