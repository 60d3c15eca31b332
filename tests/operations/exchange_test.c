// AppendExchange: messages and the call that produced them, all or nothing; and its replay.

#include <stdio.h>

#include "base/limits.h"
#include "entries.h"

enum { SENT_MAX = 8 };

// A request that is put together message by message.
typedef struct Sent {
    AppendExchangeRequest request;
    NewMessage *messages[SENT_MAX];
    NewCall call;
    ModelRef model;
    Usage usage;
} Sent;

static Sent *sent_new(Fixture *f, const char *session)
{
    Sent *sent = fixture_alloc(f, sizeof(Sent));
    sent->request.session_id = CHARS(session);
    sent->request.messages = sent->messages;
    sent->model = (ModelRef){.provider = "anthropic", .name = "claude-sonnet-4"};
    sent->usage = (Usage){.input_tokens = 10, .output_tokens = 5, .cost_nano_usd = 1234000};
    sent->call = (NewCall){.resolved = &sent->model, .usage = &sent->usage};
    return sent;
}

static NewMessage *say(Fixture *f, Sent *sent, Role role, const char *text)
{
    CHECK(sent->request.n_messages < SENT_MAX);
    NewMessage *message = text_message(f, role, text);
    sent->messages[sent->request.n_messages++] = message;
    return message;
}

// "u:hello a:hi": each word a message, its role the first letter.
static Sent *conversation(Fixture *f, const char *session, const char *words)
{
    Sent *sent = sent_new(f, session);
    char *copy = fixture_alloc(f, strlen(words) + 1), *rest = copy, *word;
    memcpy(copy, words, strlen(words));
    while ((word = strsep(&rest, " ")) != NULL) {
        if (!*word) continue;
        Role role = *word == 'u'   ? ROLE_USER
                    : *word == 'a' ? ROLE_ASSISTANT
                    : *word == 's' ? ROLE_SYSTEM
                                   : ROLE_TOOL;
        say(f, sent, role, word + 2);
    }
    return sent;
}

static AppendExchangeResponse *exchange_ok(Fixture *f, Sent *sent)
{
    return CALL_OK(f, append_exchange, AppendExchange, sent->request);
}

static AppendExchangeResponse *replay_ok(Fixture *f, const char *session, const char *words)
{
    Sent *sent = conversation(f, session, words);
    sent->request.replay = true;
    sent->request.call = &sent->call;
    return exchange_ok(f, sent);
}

// `index` is named as the place of the divergence. Nothing is stored.
static void replay_diverges(Fixture *f, const char *session, const char *words, int index)
{
    uint64_t before = newest_sequence(f);
    Sent *sent = conversation(f, session, words);
    sent->request.replay = true;
    CALL_FAILS(f, append_exchange, AppendExchange, "HISTORY_DIVERGED", sent->request);
    CHECK_EQ(f->status.code, STATUS_ABORTED);
    char named[32];
    snprintf(named, sizeof(named), "messages[%d]", index);
    CHECK(strstr(f->status.message, named));
    CHECK_EQ(newest_sequence(f), before);
}

static void set_prompt(Fixture *f, const char *session, const char *prompt)
{
    SessionField mask = SESSION_FIELD_SYSTEM_PROMPT;
    CALL_OK(
        f, update_session, UpdateSession,
        {.session_id = CHARS(session), .n_mask = 1, .mask = &mask, .system_prompt = CHARS(prompt)});
}

TEST(exchange_appends_messages_in_order_and_links_the_answer_to_its_call)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = conversation(f, session, "u:hello a:hi");
    sent->request.call = &sent->call;
    AppendExchangeResponse *reply = exchange_ok(f, sent);
    CHECK_EQ(reply->n_receipts, 2);
    CHECK_EQ(reply->receipts[0]->sequence, 0);
    CHECK_EQ(reply->receipts[1]->sequence, 1);
    CHECK_STR(reply->receipts[0]->parent_id, "");
    CHECK_STR(reply->receipts[1]->parent_id, reply->receipts[0]->id);
    CHECK_EQ(reply->receipts[1]->n_part_ids, 1);
    CHECK_EQ(reply->skipped_count, 0);
    CHECK_EQ(reply->n_totals, 0);
    Message *user = message_ok(f, reply->receipts[0]->id);
    Message *answer = message_ok(f, reply->receipts[1]->id);
    CHECK_STR(user->call_id, "");
    CHECK_STR(answer->call_id, reply->call->id);
    CHECK_STR(answer->parts[0]->id, reply->receipts[1]->part_ids[0]);
    Session *head = get_ok(f, session);
    CHECK_EQ(head->message_count, 2);
    CHECK_EQ(head->call_count, 1);
    CHECK_STR(head->last_call->id, reply->call->id);
    CHECK_STR(head->last_agent_message, "hi");
    CHECK_STR(history_texts(f, session), "hello hi");
}

TEST(exchange_leaves_an_event_for_each_message_and_one_for_the_call)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = conversation(f, session, "u:a a:b");
    sent->request.call = &sent->call;
    AppendExchangeResponse *reply = exchange_ok(f, sent);
    ListEventsResponse *events = CALL_OK(f, list_events, ListEvents, {.after_sequence = 1});
    CHECK_EQ(events->n_events, 3);
    CHECK_STR(events->events[0]->message_id, reply->receipts[0]->id);
    CHECK_STR(events->events[1]->type, "message.appended");
    CHECK_STR(events->events[2]->type, "call.recorded");
    CHECK_STR(events->events[2]->record_id, reply->call->id);
}

TEST(exchange_links_the_answers_at_its_end_alone)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = conversation(f, session, "u:1 a:2 t:3 a:4 a:5");
    sent->messages[3]->call_id = "chat_7";
    sent->request.call = &sent->call;
    AppendExchangeResponse *reply = exchange_ok(f, sent);
    const char *wanted[] = {"", "", "", "chat_7", reply->call->id};
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(message_ok(f, reply->receipts[i]->id)->call_id, wanted[i]);
    }
    sent = conversation(f, session, "u:6"); // a call that failed produced nothing
    sent->request.call = &sent->call;
    reply = exchange_ok(f, sent);
    CHECK_STR(message_ok(f, reply->receipts[0]->id)->call_id, "");
    CHECK_EQ(get_ok(f, session)->call_count, 2);
}

TEST(exchange_without_a_call_appends_messages_alone)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendExchangeResponse *reply = exchange_ok(f, conversation(f, session, "u:a a:b"));
    CHECK(reply->call == NULL);
    CHECK_STR(message_ok(f, reply->receipts[1]->id)->call_id, "");
    CHECK_EQ(get_ok(f, session)->call_count, 0);
}

TEST(exchange_goes_where_its_parent_and_expected_head_say)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_ASSISTANT, "m2");
    Sent *sent = conversation(f, session, "u:x a:y");
    sent->request.expected_head_case = APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    sent->request.expected_head_id = CHARS(m1);
    CALL_FAILS(f, append_exchange, AppendExchange, "HEAD_MOVED", sent->request);
    sent->request.expected_head_id = CHARS(m2);
    sent->request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    sent->request.parent_id = CHARS(m1);
    exchange_ok(f, sent);
    CHECK_STR(history_texts(f, session), "m1 x y");
    CALL_FAILS(f, append_exchange, AppendExchange, "HEAD_MOVED", sent->request);
    sent->request.expected_head_case = 0;
    sent->request.parent_id = UNKNOWN_ID;
    CALL_FAILS(f, append_exchange, AppendExchange, "MESSAGE_NOT_FOUND", sent->request);
    const char *elsewhere = append_ok(f, session_ok(f), ROLE_USER, "other");
    sent->request.parent_id = CHARS(elsewhere);
    CALL_FAILS(f, append_exchange, AppendExchange, "NOT_IN_TREE", sent->request);
    CHECK_STR(history_texts(f, session), "m1 x y");
}

TEST(exchange_after_a_head_that_is_known_by_its_external_id)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External first = {.source = "pi", .id = "1"}, second = {.source = "pi", .id = "2"};
    Sent *sent = conversation(f, session, "u:x a:y");
    sent->messages[1]->external = &first;
    exchange_ok(f, sent);
    sent = conversation(f, session, "u:z");
    sent->messages[0]->external = &second;
    sent->request.expected_head_case =
        APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_EXTERNAL;
    sent->request.expected_head_external = &second; // of nothing yet
    CALL_FAILS(f, append_exchange, AppendExchange, "HEAD_MOVED", sent->request);
    sent->request.expected_head_external = &first;
    exchange_ok(f, sent);
    CALL_FAILS(f, append_exchange, AppendExchange, "HEAD_MOVED", sent->request);
    External nameless = {.source = "pi", .id = ""};
    sent->request.expected_head_external = &nameless;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK_STR(history_texts(f, session), "x y z");
}

TEST(exchange_usage_is_that_of_its_call_or_of_its_messages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *agent = subagent_ok(f, session);
    Usage usage = {.input_tokens = 7, .cost_nano_usd = 70};
    Sent *sent = conversation(f, agent, "u:a a:b");
    sent->messages[1]->usage = &usage;
    sent->request.call = &sent->call;
    sent->request.propagate_usage = true;
    AppendExchangeResponse *reply = exchange_ok(f, sent);
    CHECK_EQ(reply->n_totals, 2);
    CHECK_STR(reply->totals[0]->session_id, agent);
    CHECK_EQ(reply->call->n_totals, 0);
    check_totals(get_ok(f, session)->totals, 10, 5, 0, 0, 1234000);
    check_totals(get_ok(f, agent)->own_totals, 7, 0, 0, 0, 70);
    sent->request.call = NULL;
    reply = exchange_ok(f, sent);
    CHECK_EQ(reply->n_totals, 2);
    check_totals(get_ok(f, session)->totals, 17, 5, 0, 0, 1234070);
    sent->messages[1]->usage = NULL;
    CHECK_EQ(exchange_ok(f, sent)->n_totals, 0);
}

TEST(exchange_is_all_or_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    External external = {.source = "hecate", .id = "1"};
    uint64_t before = newest_sequence(f);
    Sent *sent = conversation(f, session, "u:a a:b u:c");
    sent->messages[0]->external = sent->messages[2]->external = &external; // one of them fails late
    sent->request.call = &sent->call;
    CALL_FAILS(f, append_exchange, AppendExchange, "EXTERNAL_TAKEN", sent->request);
    CHECK_EQ(newest_sequence(f), before);
    CHECK_STR(history_texts(f, session), "m1");
    CHECK_EQ(get_ok(f, session)->call_count, 0);
    CHECK_EQ(get_ok(f, session)->next_sequence, 1);
    sent->messages[2]->external = NULL;
    sent->call.external = &external;
    exchange_ok(f, sent);
    sent->messages[0]->external = NULL;
    CALL_FAILS(f, append_exchange, AppendExchange, "EXTERNAL_TAKEN", sent->request);
    CHECK(strstr(f->status.message, "call"));
    CHECK_STR(history_texts(f, session), "m1 a b c");
}

TEST(exchange_is_checked_like_its_messages_and_its_call)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = sent_new(f, session);
    sent->request.call = &sent->call;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK(strstr(f->status.message, "messages"));
    sent = conversation(f, session, "u:a a:b");
    sent->messages[1]->role = ROLE_UNSPECIFIED;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK(strstr(f->status.message, "messages[1].role"));
    sent->messages[1]->role = ROLE_ASSISTANT;
    Part empty = {.kind_case = PART__KIND_TOOL_USE, .tool_use = &(ToolUse){.id = "t"}};
    sent->messages[1]->parts[0] = &empty;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_PART", sent->request);
    CHECK(strstr(f->status.message, "messages[1].parts[0]"));
    sent = conversation(f, session, "u:a");
    sent->request.call = &sent->call;
    sent->call.resolved = NULL;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK(strstr(f->status.message, "call.requested"));
    sent->request.call = NULL;
    sent->request.session_id = UNKNOWN_ID;
    CALL_FAILS(f, append_exchange, AppendExchange, "SESSION_NOT_FOUND", sent->request);
    sent->request.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, append_exchange, AppendExchange, "SESSION_ARCHIVED", sent->request);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, append_exchange, AppendExchange, "SESSION_DELETED", sent->request);
}

TEST(exchange_holds_so_many_messages_and_parts)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    enum { MAX = EXCHANGE_MESSAGE_COUNT_MAX };
    NewMessage **messages = fixture_alloc(f, (MAX + 1) * sizeof(NewMessage *));
    const char *text = filled(f, 'x', 200); // shorter ones are too much once decoded
    for (size_t i = 0; i <= MAX; i++)
        messages[i] = text_message(f, ROLE_USER, text);
    AppendExchangeRequest request = {
        .session_id = CHARS(session), .n_messages = MAX + 1, .messages = messages};
    CALL_FAILS(f, append_exchange, AppendExchange, "TOO_LONG", request);
    CHECK(strstr(f->status.message, "messages"));
    request.n_messages = MAX;
    AppendExchangeResponse *reply = CALL_OK(f, append_exchange, AppendExchange, request);
    CHECK_EQ(reply->n_receipts, MAX);
    CHECK_EQ(reply->receipts[MAX - 1]->sequence, MAX - 1);
    CHECK_EQ(get_ok(f, session)->message_count, MAX);
    request.replay = true;
    CHECK_EQ(CALL_OK(f, append_exchange, AppendExchange, request)->skipped_count, MAX);

    Part *parts[PART_COUNT_MAX];
    for (size_t i = 0; i < PART_COUNT_MAX; i++)
        parts[i] = messages[0]->parts[0];
    size_t count = EXCHANGE_PART_COUNT_MAX / PART_COUNT_MAX;
    request.replay = false;
    request.n_messages = count + 1;
    for (size_t i = 0; i < count; i++) {
        messages[i]->n_parts = PART_COUNT_MAX;
        messages[i]->parts = parts;
    }
    CALL_FAILS(f, append_exchange, AppendExchange, "TOO_LONG", request);
    CHECK(strstr(f->status.message, "parts"));
    request.n_messages = count;
    reply = CALL_OK(f, append_exchange, AppendExchange, request);
    CHECK_EQ(reply->receipts[count - 1]->n_part_ids, PART_COUNT_MAX);
}

TEST(exchange_sent_again_with_its_operation_id_is_done_once)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = conversation(f, session, "u:a a:b");
    sent->request.call = &sent->call;
    AppendExchangeResponse *first =
        CALL_OK_WITH(f, "op", append_exchange, AppendExchange, sent->request);
    AppendExchangeResponse *again =
        CALL_OK_WITH(f, "op", append_exchange, AppendExchange, sent->request);
    CHECK_STR(again->receipts[1]->id, first->receipts[1]->id);
    CHECK_STR(again->call->id, first->call->id);
    CHECK_STR(history_texts(f, session), "a b");
    sent->request.replay = true;
    CALL_FAILS_WITH(f, "op", append_exchange, AppendExchange, "OPERATION_ID_REUSED", sent->request);
}

TEST(replay_appends_what_the_history_lacks)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendExchangeResponse *reply = replay_ok(f, session, "u:1 a:2");
    CHECK_EQ(reply->skipped_count, 0);
    CHECK_EQ(reply->n_receipts, 2);
    reply = replay_ok(f, session, "u:1 a:2 u:3 a:4");
    CHECK_EQ(reply->skipped_count, 2);
    CHECK_EQ(reply->n_receipts, 2);
    CHECK_EQ(reply->receipts[0]->sequence, 2);
    CHECK_STR(message_ok(f, reply->receipts[1]->id)->call_id, reply->call->id);
    CHECK_STR(history_texts(f, session), "1 2 3 4");
    CHECK_EQ(get_ok(f, session)->call_count, 2);
}

TEST(replay_without_anything_new_writes_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    replay_ok(f, session, "u:1 a:2 u:3 a:4");
    uint64_t before = newest_sequence(f);
    const char *again[] = {"u:1 a:2 u:3 a:4", "u:1 a:2", "u:1"};
    for (size_t i = 0; i < 3; i++) {
        AppendExchangeResponse *reply = replay_ok(f, session, again[i]);
        CHECK_EQ(reply->n_receipts, 0);
        CHECK(reply->call == NULL);
        CHECK_EQ(reply->skipped_count, i == 0 ? 4 : i == 1 ? 2 : 1);
    }
    CHECK_EQ(newest_sequence(f), before);
    CHECK_EQ(get_ok(f, session)->call_count, 1);
}

// The same again, with a call that says which one it is.
static AppendExchangeResponse *replay_as(Fixture *f, const char *session, const char *request_id,
                                         External *external)
{
    Sent *sent = conversation(f, session, "u:1 a:2");
    sent->request.replay = true;
    sent->request.call = &sent->call;
    sent->request.propagate_usage = true;
    sent->call.request_id = CHARS(request_id);
    sent->call.external = external;
    return exchange_ok(f, sent);
}

// An answer that came out as the one before was paid for a second time.
TEST(replay_without_a_new_message_records_a_call_that_is_new)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendExchangeResponse *first = replay_as(f, session, "r1", NULL);
    AppendExchangeResponse *second = replay_as(f, session, "r2", NULL);
    CHECK_EQ(second->n_receipts, 0);
    CHECK_EQ(second->skipped_count, 2);
    CHECK(second->call && strcmp(second->call->id, first->call->id) != 0);
    CHECK_EQ(second->n_totals, 1);
    check_totals(get_ok(f, session)->totals, 20, 10, 0, 0, 2 * 1234000);
    Session *head = get_ok(f, session);
    CHECK_EQ(head->call_count, 2);
    CHECK_STR(head->last_call->request_id, "r2");
    CHECK_EQ(head->message_count, 2);
    MessagesForSessionResponse *page =
        CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
    CHECK_STR(page->messages[1]->call_id, first->call->id); // whose answer it was first
    ListEventsResponse *events =
        CALL_OK(f, list_events, ListEvents, {.after_sequence = newest_sequence(f) - 1});
    CHECK_STR(events->events[0]->type, "call.recorded");
    CHECK_STR(events->events[0]->record_id, second->call->id);
}

TEST(replay_without_a_new_message_records_no_call_twice)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    External external = {.source = "hecate", .id = "call_1"};
    External other = {.source = "hecate", .id = "call_2"};
    replay_as(f, session, "r1", NULL);
    replay_as(f, session, "r2", NULL);
    replay_as(f, session, "r3", &external);
    uint64_t before = newest_sequence(f);
    CHECK(!replay_as(f, session, "r1", NULL)->call); // sent again, late
    CHECK(!replay_as(f, session, "r2", NULL)->call);
    CHECK(!replay_as(f, session, "r4", &external)->call); // the external id is the one that counts
    CHECK(!replay_as(f, session, "", NULL)->call);        // nobody can tell which one it is
    CHECK_EQ(newest_sequence(f), before);
    CHECK(replay_as(f, session, "r3", &other)->call);
    CHECK_EQ(get_ok(f, session)->call_count, 4);
    const char *elsewhere = session_ok(f); // a request id is one of its session
    CHECK(replay_as(f, elsewhere, "r1", NULL)->call);
    CHECK(!replay_as(f, elsewhere, "r9", &other)->call); // an external one, of the store
}

// However long the ledger is, the writer looks at its end alone.
TEST(replay_without_a_new_message_looks_for_its_call_among_the_newest)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef model = {.provider = "p", .name = "m"};
    replay_as(f, session, "r1", NULL);
    for (int i = 1; i < REPLAY_CALL_COUNT_MAX; i++) {
        NewCall call = {.resolved = &model, .request_id = "other"};
        CALL_OK(f, record_call, RecordCall, {.session_id = CHARS(session), .call = &call});
    }
    CHECK(!replay_as(f, session, "r1", NULL)->call);
    CHECK(replay_as(f, session, "new", NULL)->call);
    CHECK(replay_as(f, session, "r1", NULL)->call); // one too many came since
}

TEST(replay_that_diverges_is_refused_with_the_place)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    replay_ok(f, session, "u:1 a:2 u:3");
    replay_diverges(f, session, "u:x a:2 u:3 a:4", 0);
    replay_diverges(f, session, "u:1 a:x u:3 a:4", 1);
    replay_diverges(f, session, "u:1 u:2 u:3 a:4", 1); // another role
    replay_diverges(f, session, "u:1 a:2 u:x", 2);
    replay_diverges(f, session, "u:3 a:4", 0); // the history left out
    CHECK_STR(history_texts(f, session), "1 2 3");
}

TEST(replay_follows_the_history_and_not_the_log)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendExchangeResponse *reply = replay_ok(f, session, "u:1 a:2 u:3 a:4");
    const char *through = reply->receipts[1]->id;
    const char *fork = fork_ok(f, session, through);
    CHECK_EQ(replay_ok(f, fork, "u:1 a:2 u:x")->skipped_count, 2); // inherited
    CHECK_STR(history_texts(f, fork), "1 2 x");
    rewind_ok(f, session, through);
    replay_ok(f, session, "u:1 a:2 u:5");
    CHECK_STR(history_texts(f, session), "1 2 5");
    message_delete_ok(f, reply->receipts[0]->id);
    replay_ok(f, session, "a:2 u:5 a:6");
    CHECK_STR(history_texts(f, session), "2 5 6");
    setting_ok(f, session, "thinking_level", "high"); // no part of what is compared
    marker_ok(f, session, reply->receipts[1]->id, "so far");
    replay_ok(f, session, "a:2 u:5 a:6 u:7");
    CHECK_STR(history_texts(f, session), "2 5 6 7");
}

TEST(replay_skips_a_leading_system_message_that_is_the_prompt)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    set_prompt(f, session, "be-brief");
    AppendExchangeResponse *reply = replay_ok(f, session, "s:be-brief u:1 a:2");
    CHECK_EQ(reply->skipped_count, 1);
    CHECK_EQ(reply->receipts[0]->sequence, 0);
    reply = replay_ok(f, session, "s:be-brief u:1 a:2 u:3");
    CHECK_EQ(reply->skipped_count, 3);
    CHECK_EQ(replay_ok(f, session, "u:1 a:2 u:3 a:4")->skipped_count, 3); // without it
    CHECK_EQ(replay_ok(f, session, "s:be-brief")->skipped_count, 1);
    replay_diverges(f, session, "s:be-long u:1 a:2 u:3", 0);
    replay_diverges(f, session, "s:be-brief u:x", 1);
    CHECK_STR(history_texts(f, session), "1 2 3 4");

    const char *other = session_ok(f);
    replay_ok(f, other, "s:be-brief u:1"); // no prompt: a message like others
    CHECK_STR(history_texts(f, other), "be-brief 1");
    set_prompt(f, other, "be-brief"); // the history begins with it
    CHECK_EQ(replay_ok(f, other, "s:be-brief u:1 a:2")->skipped_count, 2);
    CHECK_STR(history_texts(f, other), "be-brief 1 2");
    const char *third = session_ok(f);
    set_prompt(f, third, "be-brief");
    exchange_ok(f, conversation(f, third, "s:be-brief u:1")); // without replay it is kept
    CHECK_STR(history_texts(f, third), "be-brief 1");
}

TEST(replay_wants_its_place_and_kinds)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Sent *sent = conversation(f, session, "u:1");
    sent->request.replay = true;
    sent->request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK(strstr(f->status.message, "parent_id"));
    sent->request.parent_case = 0;
    sent->messages[0]->kind = MESSAGE_KIND_NAME;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", sent->request);
    CHECK(strstr(f->status.message, "messages[0].kind"));
    sent->messages[0]->kind = MESSAGE_KIND_INJECTED;
    exchange_ok(f, sent);
    CHECK_EQ(exchange_ok(f, sent)->skipped_count, 1);
    sent->request.expected_head_case = APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    CALL_FAILS(f, append_exchange, AppendExchange, "HEAD_MOVED", sent->request);
}

// One part of each kind, each with a field that is compared and one that is not.
typedef struct Parts {
    Text text;
    Thinking thinking;
    ToolUse use;
    ToolResult result;
    Attachment attachment;
    Attachment *attachments[1];
    Image image, attached;
    File file;
    Extension extension;
    Part parts[7];
    Part *pointers[7];
    NewMessage message;
    NewMessage *messages[1];
} Parts;

static Parts *parts_new(Fixture *f)
{
    Parts *p = fixture_alloc(f, sizeof(Parts));
    p->text = (Text){.text = "text"};
    p->thinking = (Thinking){.text = "hm", .data = {1, (uint8_t *)CHARS("d")}};
    p->use = (ToolUse){
        .id = "t1", .name = "read", .input_case = TOOL_USE__INPUT_INPUT_JSON, .input_json = "{}"};
    p->attached = p->image =
        (Image){.mime_type = "image/png", .source_case = IMAGE__SOURCE_URL, .url = "u"};
    p->attachment = (Attachment){.kind_case = ATTACHMENT__KIND_IMAGE, .image = &p->attached};
    p->attachments[0] = &p->attachment;
    p->result = (ToolResult){
        .tool_use_id = "t1", .content = "c", .n_attachments = 1, .attachments = p->attachments};
    p->file = (File){.mime_type = "text/plain",
                     .source_case = FILE__SOURCE_DATA,
                     .data = {1, (uint8_t *)CHARS("f")}};
    p->extension = (Extension){.type = "x", .json = "1"};
    p->parts[0] = (Part){.kind_case = PART__KIND_TEXT, .text = &p->text};
    p->parts[1] = (Part){.kind_case = PART__KIND_THINKING, .thinking = &p->thinking};
    p->parts[2] = (Part){.kind_case = PART__KIND_TOOL_USE, .tool_use = &p->use};
    p->parts[3] = (Part){.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &p->result};
    p->parts[4] = (Part){.kind_case = PART__KIND_IMAGE, .image = &p->image};
    p->parts[5] = (Part){.kind_case = PART__KIND_FILE, .file = &p->file};
    p->parts[6] = (Part){.kind_case = PART__KIND_EXTENSION, .extension = &p->extension};
    for (size_t i = 0; i < 7; i++)
        p->pointers[i] = &p->parts[i];
    p->message = (NewMessage){.role = ROLE_ASSISTANT, .n_parts = 7, .parts = p->pointers};
    p->messages[0] = &p->message;
    return p;
}

static AppendExchangeRequest parts_request(const char *session, Parts *parts)
{
    return (AppendExchangeRequest){
        .session_id = CHARS(session),
        .n_messages = 1,
        .messages = parts->messages,
        .replay = true,
    };
}

TEST(replay_compares_what_a_model_is_told)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_OK(f, append_exchange, AppendExchange, parts_request(session, parts_new(f)));
    enum { CHANGES = 18 };
    for (size_t i = 0; i < CHANGES; i++) {
        Parts *p = parts_new(f);
        switch (i) {
        case 0: p->text.text = "other"; break;
        case 1: p->thinking.text = "other"; break;
        case 2: p->thinking.data.data = (uint8_t *)CHARS("e"); break;
        case 3: p->parts[1].signature = (ProtobufCBinaryData){1, (uint8_t *)CHARS("s")}; break;
        case 4: p->use.id = "t2"; break;
        case 5: p->use.input_json = "{ }"; break;
        case 6:
            p->use.input_case = TOOL_USE__INPUT_INPUT_TEXT;
            p->use.input_text = "{}";
            break;
        case 7: p->result.content = "other"; break;
        case 8: p->result.is_error = true; break;
        case 9: p->attached.url = "v"; break;
        case 10: p->result.n_attachments = 0; break;
        case 11: p->image.mime_type = "image/jpeg"; break;
        case 12: p->file.data.data = (uint8_t *)CHARS("g"); break;
        case 13: p->extension.json = "2"; break;
        case 14: p->message.n_parts = 6; break;
        case 15: p->message.name = "b"; break;
        case 16: p->pointers[0] = &p->parts[1]; break;
        case 17: p->thinking.redacted = true; break;
        default: CHECK(false);
        }
        CALL_FAILS(f, append_exchange, AppendExchange, "HISTORY_DIVERGED",
                   parts_request(session, p));
    }
    CHECK_EQ(get_ok(f, session)->message_count, 1);
}

TEST(replay_passes_over_what_a_client_may_not_know)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Parts *p = parts_new(f);
    p->message.created_at = 5;
    p->message.usage = &(Usage){.input_tokens = 1};
    p->message.agent = "a";
    p->parts[0].id = "mine";
    p->use.state = TOOL_STATE_COMPLETED;
    p->use.title = "reading";
    CALL_OK(f, append_exchange, AppendExchange, parts_request(session, p));
    p = parts_new(f);
    p->message.turn_id = "t";
    p->message.status = MESSAGE_STATUS_INTERRUPTED;
    p->message.data_json = "1";
    p->parts[0].id = "other";
    p->parts[0].started_at = 7;
    p->parts[0].metadata_json = "2";
    p->result.tool_name = "read";
    CHECK_EQ(CALL_OK(f, append_exchange, AppendExchange, parts_request(session, p))->skipped_count,
             1);
}
