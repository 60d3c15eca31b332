// Hecate's two streams: messages and provider calls. Its documented behaviour over a Unix socket,
// and the flows of a proxy that sends the whole history with every round; docs/systems/hecate.md
// says which row each shows.

#include <stdio.h>

#include "ways.h"

enum { SENT_MAX = 8, EXCHANGERS = 64, PER_EXCHANGE = 3 };

// A round of a conversation: what was sent, the answer, and the call that it took.
typedef struct Round {
    NewMessage *messages[SENT_MAX];
    size_t count;
    NewCall call;
    ModelRef requested, resolved;
    Usage usage;
} Round;

static Round *round_new(Fixture *f, const char *request_id)
{
    Round *round = fixture_alloc(f, sizeof(Round));
    round->requested = (ModelRef){.provider = "openai", .name = "gpt-4o"};
    round->resolved = (ModelRef){.provider = "azure", .name = "gpt-4o-2024-08-06"};
    round->usage = (Usage){
        .input_tokens = 12,
        .output_tokens = 4,
        .total_tokens = 16,
        .cost_nano_usd = 1234 * INT64_C(1000), // 1234 micro-USD
    };
    round->call = (NewCall){
        .request_id = CHARS(request_id),
        .requested = &round->requested,
        .resolved = &round->resolved,
        .provider_kind = "cloud",
        .usage = &round->usage,
    };
    return round;
}

static void add(Round *round, NewMessage *message)
{
    CHECK(round->count < SENT_MAX);
    round->messages[round->count++] = message;
}

static void say(Fixture *f, Round *round, Role role, const char *text)
{
    add(round, text_message(f, role, text));
}

static AppendExchangeRequest exchange(const char *session, Round *round, bool is_replay)
{
    return (AppendExchangeRequest){
        .session_id = CHARS(session),
        .n_messages = round->count,
        .messages = round->messages,
        .call = &round->call,
        .replay = is_replay,
    };
}

static AppendExchangeResponse *send_ok(Fixture *f, const char *session, Round *round,
                                       bool is_replay)
{
    return CALL_OK(f, append_exchange, AppendExchange, exchange(session, round, is_replay));
}

static const char *chat_ok(Fixture *f, const char *title, const char *prompt)
{
    NewSession wanted = new_session();
    wanted.title = CHARS(title);
    wanted.system_prompt = CHARS(prompt);
    return create_ok(f, &wanted)->id;
}

// One round without history: a question and its answer.
static AppendExchangeResponse *turn_ok(Fixture *f, const char *session, const char *request_id)
{
    Round *round = round_new(f, request_id);
    say(f, round, ROLE_USER, "q");
    say(f, round, ROLE_ASSISTANT, "a");
    return send_ok(f, session, round, /* is_replay= */ false);
}

static MessagesForSessionResponse *messages(Fixture *f, const char *session)
{
    return CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
}

static ListCallsResponse *calls(Fixture *f, const char *session)
{
    return CALL_OK(f, list_calls, ListCalls, {.session_id = CHARS(session)});
}

TEST(hecate_create_and_get_session)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = chat_ok(f, "New chat", "Be brief.");
    Session *session = get_ok(f, id);
    CHECK_STR(session->title, "New chat");
    CHECK_STR(session->system_prompt, "Be brief.");
    CHECK(session->created_at > 0 && session->updated_at > 0);
    CHECK_EQ(session->message_count, 0);
    CHECK_EQ(session->call_count, 0);
    CALL_FAILS(f, get_session, GetSession, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
}

TEST(hecate_append_exchange_keeps_both_streams)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *session = session_ok(f);
    const int64_t began_at = f->now_ms;
    f->now_ms += 5000;
    AppendExchangeResponse *reply = turn_ok(f, session, "req-1");
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->n_messages, 2);
    CHECK_EQ(read->messages[0]->sequence, 0);
    CHECK_EQ(read->messages[1]->sequence, 1);
    CHECK_STR(read->messages[0]->call_id, "");
    CHECK_STR(read->messages[1]->call_id, reply->call->id);
    ListCallsResponse *ledger = calls(f, session);
    CHECK_EQ(ledger->n_calls, 1);
    CallRecord *call = ledger->calls[0];
    CHECK_STR(call->id, reply->call->id);
    CHECK_STR(call->request_id, "req-1");
    CHECK_STR(call->requested->provider, "openai");
    CHECK_STR(call->requested->name, "gpt-4o");
    CHECK_STR(call->resolved->provider, "azure");
    CHECK_STR(call->resolved->name, "gpt-4o-2024-08-06");
    CHECK_STR(call->provider_kind, "cloud");
    CHECK_EQ(call->usage->cost_nano_usd, 1234000);
    CHECK_EQ(call->usage->input_tokens, 12);
    CHECK_EQ(call->usage->output_tokens, 4);
    CHECK_EQ(call->usage->total_tokens, 16);
    CHECK_EQ(read->messages[0]->created_at, f->now_ms);
    CHECK_EQ(call->created_at, f->now_ms);
    Session *head = get_ok(f, session);
    CHECK_EQ(head->created_at, began_at);
    CHECK_EQ(head->last_active_at, call->created_at);
    CHECK_EQ(head->updated_at, began_at); // no setting was changed
}

// Messages and calls may come with times of their own, and order nothing by them.
TEST(hecate_times_that_are_given_are_kept)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *session = session_ok(f);
    Round *round = round_new(f, "r");
    say(f, round, ROLE_USER, "q");
    say(f, round, ROLE_ASSISTANT, "a");
    round->messages[0]->created_at = 2000;
    round->messages[1]->created_at = 1000;
    round->call.created_at = 1500;
    send_ok(f, session, round, /* is_replay= */ false);
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->messages[0]->created_at, 2000);
    CHECK_EQ(read->messages[1]->created_at, 1000);
    CHECK_EQ(calls(f, session)->calls[0]->created_at, 1500);
}

// A whole session is three calls; what others write between them is not mixed in.
TEST(hecate_get_of_a_whole_session_is_of_one_moment)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    turn_ok(f, id, "req-1");
    turn_ok(f, id, "req-2");
    Session *session = get_ok(f, id);
    turn_ok(f, id, "req-3"); // between the calls
    MessagesForSessionResponse *read =
        CALL_OK(f, messages_for_session, MessagesForSession,
                {.session_id = CHARS(id), .through_message_id = session->head_id});
    CHECK_EQ(read->n_messages, session->message_count);
    ListCallsRequest request = {.session_id = CHARS(id), .limit = (uint32_t)session->call_count};
    ListCallsResponse *ledger = CALL_OK(f, list_calls, ListCalls, request);
    CHECK_EQ(ledger->n_calls, 2);
    CHECK_STR(ledger->calls[1]->id, session->last_call->id);
    CHECK_STR(read->messages[3]->call_id, session->last_call->id);
}

TEST(hecate_sequences_rise_over_exchanges)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *session = session_ok(f);
    for (int i = 0; i < 3; i++)
        turn_ok(f, session, "r");
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->n_messages, 6);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(read->messages[i]->sequence, i);
}

static NewMessage *tool_answer(Fixture *f, const char *id, const char *content, bool is_error)
{
    NewMessage *message = text_message(f, ROLE_TOOL, "");
    ToolResult *result = fixture_alloc(f, sizeof(ToolResult));
    *result =
        (ToolResult){.tool_use_id = CHARS(id), .content = CHARS(content), .is_error = is_error};
    *message->parts[0] = (Part){.kind_case = PART__KIND_TOOL_RESULT, .tool_result = result};
    return message;
}

// An answer of a signed thought, a text and a tool's use.
static NewMessage *thinking_answer(Fixture *f)
{
    NewMessage *message = text_message(f, ROLE_ASSISTANT, "I look.");
    Thinking *thinking = fixture_alloc(f, sizeof(Thinking));
    ToolUse *use = fixture_alloc(f, sizeof(ToolUse));
    Part *thought = fixture_alloc(f, sizeof(Part)), *asks = fixture_alloc(f, sizeof(Part));
    Part **parts = fixture_alloc(f, 3 * sizeof(Part *));
    *thinking = (Thinking){.text = "hm"};
    *use = (ToolUse){.id = "call_a",
                     .name = "read",
                     .input_case = TOOL_USE__INPUT_INPUT_JSON,
                     .input_json = "{\"path\": \"x\"}"};
    *thought = (Part){.kind_case = PART__KIND_THINKING, .thinking = thinking};
    thought->signature = (ProtobufCBinaryData){3, (uint8_t *)CHARS("sig")};
    *asks = (Part){.kind_case = PART__KIND_TOOL_USE, .tool_use = use};
    parts[0] = thought;
    parts[1] = message->parts[0];
    parts[2] = asks;
    message->parts = parts;
    message->n_parts = 3;
    return message;
}

static void check_thinking_answer(const Message *answer)
{
    CHECK_EQ(answer->n_parts, 3);
    CHECK_STR(answer->parts[0]->thinking->text, "hm");
    CHECK_EQ(answer->parts[0]->signature.len, 3);
    CHECK(memcmp(answer->parts[0]->signature.data, "sig", 3) == 0);
    CHECK_STR(answer->parts[1]->text->text, "I look.");
    CHECK_STR(answer->parts[2]->tool_use->input_json, "{\"path\": \"x\"}"); // byte by byte
}

TEST(hecate_content_blocks_and_tool_calls_are_kept)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *session = session_ok(f);
    Round *round = round_new(f, "r");
    add(round, thinking_answer(f));
    add(round, tool_answer(f, "call_a", "no such file", /* is_error= */ true));
    send_ok(f, session, round, /* is_replay= */ false);
    MessagesForSessionResponse *read = messages(f, session);
    check_thinking_answer(read->messages[0]);
    const ToolResult *result = read->messages[1]->parts[0]->tool_result;
    CHECK_STR(result->tool_use_id, "call_a");
    CHECK_STR(result->content, "no such file");
    CHECK(result->is_error);
}

TEST(hecate_listing_shows_counts_and_the_last_call_without_bodies)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *ids[3];
    for (size_t i = 0; i < 3; i++)
        ids[i] = chat_ok(f, "chat", "A prompt that no listing carries.");
    for (size_t i = 0; i < 3; i++) {
        f->now_ms += 1000;
        turn_ok(f, ids[2 - i], "req-1");
        turn_ok(f, ids[2 - i], "req-2");
    }
    ListSessionsRequest request = {.order = SESSION_ORDER_LAST_ACTIVE, .limit = 2};
    ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, request);
    CHECK_EQ(page->n_sessions, 2);
    CHECK(*page->next_cursor != '\0'); // has_more
    CHECK_STR(page->sessions[0]->id, ids[0]);
    CHECK_STR(page->sessions[1]->id, ids[1]);
    const Session *first = page->sessions[0];
    CHECK_STR(first->title, "chat");
    CHECK_STR(first->system_prompt, "");
    CHECK_EQ(first->message_count, 4);
    CHECK_EQ(first->call_count, 2);
    CHECK_STR(first->last_call->request_id, "req-2");
    CHECK_STR(first->last_call->model->provider, "azure");
    CHECK_STR(first->last_call->model->name, "gpt-4o-2024-08-06");
    CHECK_EQ(first->last_call->cost_nano_usd, 1234000);
    request.cursor = page->next_cursor;
    page = CALL_OK(f, list_sessions, ListSessions, request);
    CHECK_EQ(page->n_sessions, 1);
    CHECK_STR(page->sessions[0]->id, ids[2]);
    CHECK_STR(page->next_cursor, "");
    CALL_FAILS(f, list_sessions, ListSessions, "INVALID_ARGUMENT", {.limit = 1001});
}

TEST(hecate_title_and_prompt_leave_each_other_alone)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = chat_ok(f, "one", "prompt");
    SessionField title = SESSION_FIELD_TITLE, prompt = SESSION_FIELD_SYSTEM_PROMPT;
    UpdateSessionRequest request = {
        .session_id = CHARS(id), .n_mask = 1, .mask = &title, .title = "two"};
    CALL_OK(f, update_session, UpdateSession, request);
    CHECK_STR(get_ok(f, id)->system_prompt, "prompt");
    f->now_ms += 1000;
    request = (UpdateSessionRequest){.session_id = CHARS(id), .n_mask = 1, .mask = &prompt};
    CALL_OK(f, update_session, UpdateSession, request); // an empty one clears
    CHECK_STR(get_ok(f, id)->title, "two");
    CHECK_EQ(get_ok(f, id)->updated_at, f->now_ms);
    CHECK_STR(get_ok(f, id)->system_prompt, "");
    request.n_mask = 0;
    CALL_FAILS(f, update_session, UpdateSession, "INVALID_ARGUMENT", request);
    request.n_mask = 1;
    request.session_id = UNKNOWN_ID;
    CALL_FAILS(f, update_session, UpdateSession, "SESSION_NOT_FOUND", request);
}

TEST(hecate_deleting_a_session_takes_both_streams_along)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    turn_ok(f, id, "r");
    purge_ok(f, id, /* keep_for_forks= */ false);
    CALL_FAILS(f, get_session, GetSession, "SESSION_NOT_FOUND", {.session_id = CHARS(id)});
    CALL_FAILS(f, list_calls, ListCalls, "SESSION_NOT_FOUND", {.session_id = CHARS(id)});
    purges_settle(f);
    CHECK_EQ(table_rows(f, "messages"), 0);
    CHECK_EQ(table_rows(f, "calls"), 0);
    CALL_FAILS(f, purge_session, PurgeSession, "SESSION_NOT_FOUND", {.session_id = CHARS(id)});
}

TEST(hecate_deleting_a_call_keeps_its_messages)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    const char *call = turn_ok(f, id, "r")->call->id;
    CALL_OK(f, delete_call, DeleteCall, {.session_id = CHARS(id), .call_id = CHARS(call)});
    MessagesForSessionResponse *read = messages(f, id);
    CHECK_EQ(read->n_messages, 2);
    CHECK_STR(read->messages[1]->call_id, "");
    CHECK_EQ(calls(f, id)->n_calls, 0);
}

TEST(hecate_session_is_busy_until_it_is_not)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    SessionField mask = SESSION_FIELD_STATUS;
    CALL_OK(f, update_session, UpdateSession,
            {.session_id = CHARS(id),
             .n_mask = 1,
             .mask = &mask,
             .status = SESSION_STATUS_BUSY,
             .status_until = f->now_ms + 1000});
    CHECK_EQ(get_ok(f, id)->status, SESSION_STATUS_BUSY);
    ListSessionsRequest busy = {.status = SESSION_STATUS_BUSY};
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, busy)->n_sessions, 1);
    f->now_ms += 1000; // its agent died
    CHECK_EQ(get_ok(f, id)->status, SESSION_STATUS_IDLE);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, busy)->n_sessions, 0);
}

// A segment (runtime kind, task, run) is an entry of the log: what follows it was made under it.
// Its task is its target, by which the log is filtered.
TEST(hecate_segments_are_entries_that_are_found_by_their_subtype)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    NewMessage segment = {
        .kind = MESSAGE_KIND_SETTING,
        .subtype = "segment",
        .text = "docker",
        .target_id = "task_1",
        .name = "run_1",
        .external = &(External){.source = "hecate", .id = "segment_1"},
    };
    const char *first = entry_ok(f, id, &segment)->id;
    turn_ok(f, id, "r");
    segment.text = "host";
    segment.target_id = "task_2";
    segment.name = "run_2";
    segment.external = &(External){.source = "hecate", .id = "segment_2"};
    const char *second = entry_ok(f, id, &segment)->id;
    turn_ok(f, id, "r");
    ListMessagesRequest request = {.session_id = CHARS(id), .subtype = "segment"};
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, request)->n_messages, 2);
    request.target_id = "task_1";
    ListMessagesResponse *found = CALL_OK(f, list_messages, ListMessages, request);
    CHECK_EQ(found->n_messages, 1);
    CHECK_STR(found->messages[0]->id, first);
    CHECK_STR(found->messages[0]->text, "docker");
    CHECK_STR(found->messages[0]->name, "run_1");
    CHECK_STR(found->messages[0]->external->id, "segment_1");
    MessagesForSessionResponse *read = messages(f, id);
    CHECK_EQ(read->n_messages, 4); // of the conversation they are no part
    BuildContextRequest context = {.session_id = CHARS(id)};
    BuildContextResponse *now = CALL_OK(f, build_context, BuildContext, context);
    CHECK_EQ(now->n_settings, 1); // the segment in force
    CHECK_STR(now->settings[0]->id, second);
    context.through_message_id = read->messages[1]->id; // the one under which that was said
    CHECK_STR(CALL_OK(f, build_context, BuildContext, context)->settings[0]->id, first);
}

// The first round: the prompt in front, one question, one answer.
TEST(hecate_replay_of_a_first_turn)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = chat_ok(f, "chat", "Be brief.");
    Round *round = round_new(f, "req-1");
    say(f, round, ROLE_SYSTEM, "Be brief.");
    say(f, round, ROLE_USER, "one");
    say(f, round, ROLE_ASSISTANT, "two");
    AppendExchangeResponse *reply = send_ok(f, id, round, /* is_replay= */ true);
    CHECK_EQ(reply->skipped_count, 1);
    MessagesForSessionResponse *read = messages(f, id);
    CHECK_EQ(read->n_messages, 2);
    CHECK_EQ(read->messages[0]->sequence, 0);
    CHECK_STR(read->messages[0]->call_id, "");
    CHECK_STR(read->messages[1]->call_id, calls(f, id)->calls[0]->id);
    CHECK_STR(history_texts(f, id), "one two");

    const char *other = chat_ok(f, "chat", "Be brief.");
    round = round_new(f, "req-2"); // another system message is the conversation's own
    say(f, round, ROLE_SYSTEM, "Be long.");
    say(f, round, ROLE_USER, "one");
    CHECK_EQ(send_ok(f, other, round, /* is_replay= */ true)->skipped_count, 0);
    CHECK_STR(history_texts(f, other), "Be long. one");
}

// Each round sends all that was said before.
TEST(hecate_replay_of_several_turns)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = chat_ok(f, "chat", "Be brief.");
    const char *words[] = {"q1", "a1", "q2", "a2", "q3", "a3"};
    for (size_t turn = 1; turn <= 3; turn++) {
        Round *round = round_new(f, "r");
        say(f, round, ROLE_SYSTEM, "Be brief.");
        for (size_t i = 0; i < 2 * turn; i++)
            say(f, round, i % 2 ? ROLE_ASSISTANT : ROLE_USER, words[i]);
        AppendExchangeResponse *reply = send_ok(f, id, round, /* is_replay= */ true);
        CHECK_EQ(reply->skipped_count, 1 + 2 * (turn - 1));
        CHECK_EQ(reply->n_receipts, 2);
        CHECK_EQ(reply->receipts[0]->sequence, 2 * (turn - 1));
        uint64_t before = newest_sequence(f); // sent again, its reply lost: nothing happens
        CHECK_EQ(send_ok(f, id, round, /* is_replay= */ true)->n_receipts, 0);
        CHECK_EQ(newest_sequence(f), before);
    }
    CHECK_STR(history_texts(f, id), "q1 a1 q2 a2 q3 a3");
    MessagesForSessionResponse *read = messages(f, id);
    ListCallsResponse *ledger = calls(f, id);
    CHECK_EQ(ledger->n_calls, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR(read->messages[2 * i]->call_id, "");
        CHECK_STR(read->messages[2 * i + 1]->call_id, ledger->calls[i]->id);
    }
    Round *wrong = round_new(f, "r");
    say(f, wrong, ROLE_SYSTEM, "Be brief.");
    say(f, wrong, ROLE_USER, "q1");
    say(f, wrong, ROLE_ASSISTANT, "something else");
    CALL_FAILS(f, append_exchange, AppendExchange, "HISTORY_DIVERGED",
               exchange(id, wrong, /* is_replay= */ true));
    CHECK(strstr(f->status.message, "messages[2]"));
    CHECK(strstr(f->status.message, read->messages[1]->id));
    CHECK_EQ(calls(f, id)->n_calls, 3);
}

// Asked for once more, the same answer came out: nothing new was said, and money was spent.
TEST(hecate_replay_of_an_answer_that_came_out_the_same)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    for (int i = 0; i < 3; i++) {
        bool is_made_again = i == 1, is_sent_again = i == 2;
        Round *round = round_new(f, i == 0 ? "req-1" : "req-2");
        say(f, round, ROLE_USER, "q");
        say(f, round, ROLE_ASSISTANT, "a");
        AppendExchangeResponse *reply = send_ok(f, id, round, /* is_replay= */ true);
        CHECK_EQ(reply->n_receipts, i == 0 ? 2 : 0);
        CHECK_EQ(reply->call != NULL, !is_sent_again);
        CHECK_EQ(get_ok(f, id)->call_count, i == 0 ? 1 : 2);
        if (is_made_again) CHECK_STR(get_ok(f, id)->last_call->request_id, "req-2");
    }
    ListCallsResponse *ledger = calls(f, id);
    CHECK_EQ(ledger->n_calls, 2);
    CHECK_STR(messages(f, id)->messages[1]->call_id, ledger->calls[0]->id);
    CHECK_EQ(ledger->calls[1]->usage->cost_nano_usd, 1234000);
}

// One question takes two calls: the first answer asks for tools, the second round brings their
// answers along.
TEST(hecate_replay_of_a_tool_loop)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    const char *id = session_ok(f);
    Round *first = round_new(f, "req-1");
    say(f, first, ROLE_USER, "what is in x?");
    add(first, thinking_answer(f));
    send_ok(f, id, first, /* is_replay= */ true);

    Round *second = round_new(f, "req-2");
    say(f, second, ROLE_USER, "what is in x?");
    add(second, thinking_answer(f));
    add(second, tool_answer(f, "call_a", "no such file", /* is_error= */ true));
    add(second, tool_answer(f, "call_b", "y", /* is_error= */ false));
    say(f, second, ROLE_ASSISTANT, "nothing");
    AppendExchangeResponse *reply = send_ok(f, id, second, /* is_replay= */ true);
    CHECK_EQ(reply->skipped_count, 2);
    CHECK_EQ(reply->n_receipts, 3);

    MessagesForSessionResponse *read = messages(f, id);
    ListCallsResponse *ledger = calls(f, id);
    CHECK_EQ(read->n_messages, 5);
    CHECK_EQ(ledger->n_calls, 2);
    const char *wanted[] = {"", ledger->calls[0]->id, "", "", ledger->calls[1]->id};
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(read->messages[i]->sequence, i);
        CHECK_STR(read->messages[i]->call_id, wanted[i]);
    }
    check_thinking_answer(read->messages[1]);
    CHECK(read->messages[2]->parts[0]->tool_result->is_error);
}

typedef struct Exchangers {
    const char *session;
    bool is_replay;
    _Atomic unsigned accepted, diverged, skipped;
} Exchangers;

static void make_texts(unsigned number, char texts[PER_EXCHANGE][32])
{
    for (int i = 0; i < PER_EXCHANGE; i++)
        snprintf(texts[i], sizeof(texts[i]), "%u.%d", number, i);
}

static void thread_exchange(const SystemThread *thread)
{
    Exchangers *all = thread->context;
    char texts[PER_EXCHANGE][32];
    make_texts(thread->number, texts);
    Text contents[PER_EXCHANGE];
    Part parts[PER_EXCHANGE], *pointers[PER_EXCHANGE];
    NewMessage said[PER_EXCHANGE], *messages_said[PER_EXCHANGE];
    for (int i = 0; i < PER_EXCHANGE; i++) {
        contents[i] = (Text){.text = texts[i]};
        parts[i] = (Part){.kind_case = PART__KIND_TEXT, .text = &contents[i]};
        pointers[i] = &parts[i];
        said[i] = (NewMessage){
            .role = i == 2 ? ROLE_ASSISTANT : ROLE_USER, .n_parts = 1, .parts = &pointers[i]};
        messages_said[i] = &said[i];
    }
    ModelRef model = {.provider = "p", .name = "m"};
    NewCall call = {.resolved = &model};
    AppendExchangeRequest request = {
        .session_id = CHARS(all->session),
        .n_messages = PER_EXCHANGE,
        .messages = messages_said,
        .call = &call,
        .replay = all->is_replay,
    };
    request.base.descriptor = &append_exchange_request__descriptor;
    fixture_fill(&request.base);
    TineStatus status;
    AppendExchangeResponse *reply = NULL;
    int code = tine_append_exchange(thread->tine, &(TineCallOptions){.out_status = &status},
                                    &request, &reply);
    if (code) {
        CHECK_STR(status.reason, "HISTORY_DIVERGED");
        all->diverged++;
        return;
    }
    if (reply->n_receipts == 0) {
        all->skipped++;
    } else {
        all->accepted++;
    }
    protobuf_c_message_free_unpacked(&reply->base, NULL);
}

TEST(hecate_exchanges_at_once_stand_whole_one_after_the_other)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    Exchangers all = {.session = session_ok(f)};
    in_threads(f, EXCHANGERS, thread_exchange, &all);
    CHECK_EQ(all.accepted, EXCHANGERS);
    MessagesForSessionResponse *read = messages(f, all.session);
    CHECK_EQ(read->n_messages, EXCHANGERS * PER_EXCHANGE);
    bool seen[EXCHANGERS] = {false};
    for (unsigned i = 0; i < EXCHANGERS * PER_EXCHANGE; i++) {
        unsigned number = EXCHANGERS, place = PER_EXCHANGE;
        const Message *message = read->messages[i];
        CHECK_EQ(message->sequence, i);
        CHECK_EQ(sscanf(message->parts[0]->text->text, "%u.%u", &number, &place), 2);
        CHECK_EQ(place, i % PER_EXCHANGE);
        if (place == 0) {
            CHECK(number < EXCHANGERS && !seen[number]);
            seen[number] = true;
        } else { // as the one before it
            char texts[PER_EXCHANGE][32];
            make_texts(number, texts);
            CHECK_STR(read->messages[i - 1]->parts[0]->text->text, texts[place - 1]);
        }
        CHECK_EQ(*message->call_id != '\0', place == 2);
    }
    CHECK_EQ(get_ok(f, all.session)->call_count, EXCHANGERS);
}

// Of replays that begin differently, one is first and the others diverge.
TEST(hecate_replays_at_once_append_one_history)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    Exchangers all = {.session = session_ok(f), .is_replay = true};
    in_threads(f, EXCHANGERS, thread_exchange, &all);
    CHECK_EQ(all.accepted, 1);
    CHECK_EQ(all.diverged, EXCHANGERS - 1);
    CHECK_EQ(messages(f, all.session)->n_messages, PER_EXCHANGE);
    CHECK_EQ(get_ok(f, all.session)->call_count, 1);
}

static void thread_same_exchange(const SystemThread *thread)
{
    SystemThread same = *thread;
    same.number = 7;
    thread_exchange(&same);
}

TEST(hecate_one_replay_sent_by_many_is_appended_once)
{
    CLEANUP(fixture_close) Fixture *f = socket_fixture();
    Exchangers all = {.session = session_ok(f), .is_replay = true};
    in_threads(f, EXCHANGERS, thread_same_exchange, &all);
    CHECK_EQ(all.accepted, 1);
    CHECK_EQ(all.skipped, EXCHANGERS - 1);
    CHECK_STR(history_texts(f, all.session), "7.0 7.1 7.2");
    CHECK_EQ(get_ok(f, all.session)->call_count, 1);
}
