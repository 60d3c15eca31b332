// tau's session, the smallest one: AddMessage, Messages, Clear. Its own 14 cases, by libtine over a
// Unix socket, embedded in memory and in a `tined --ephemeral`; docs/systems/tau.md says which row
// each shows.

#include <stdio.h>

#include "ways.h"

enum { THREADS = 100 };

// tau's Message.
typedef struct TauMessage {
    Role role;
    const char *content;
    const char *tool_call_id;                         // of a tool's answer
    const char *call_id, *call_name, *call_arguments; // of one tool call; NULL: none
    int64_t timestamp;                                // the caller's; 0: the store's
} TauMessage;

static int add(Tine *tine, const char *session, const TauMessage *message)
{
    Text text = {.text = CHARS(message->content ? message->content : "")};
    ToolUse use = {
        .id = CHARS(message->call_id),
        .name = CHARS(message->call_name),
        .input_case = TOOL_USE__INPUT_INPUT_TEXT, // a string, whatever it holds
        .input_text = CHARS(message->call_arguments),
    };
    ToolResult result = {.tool_use_id = CHARS(message->tool_call_id), .content = text.text};
    Part content = {.kind_case = PART__KIND_TEXT, .text = &text};
    Part call = {.kind_case = PART__KIND_TOOL_USE, .tool_use = &use};
    Part *parts[2] = {&content, &call};
    if (message->tool_call_id) {
        content = (Part){.kind_case = PART__KIND_TOOL_RESULT, .tool_result = &result};
    }
    NewMessage new = {
        .role = message->role,
        .created_at = message->timestamp,
        .n_parts = message->call_id ? 2 : 1,
        .parts = parts,
    };
    AppendMessageRequest request = {.session_id = CHARS(session), .message = &new};
    request.base.descriptor = &append_message_request__descriptor;
    fixture_fill(&request.base);
    AppendMessageResponse *reply = NULL;
    int code = tine_append_message(tine, NULL, &request, &reply);
    if (reply) protobuf_c_message_free_unpacked(&reply->base, NULL);
    return code;
}

static void add_ok(Fixture *f, const char *session, TauMessage message)
{
    CHECK_EQ(add(f->tine, session, &message), 0);
}

static int clear(Tine *tine, const char *session)
{
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    request.session_id = CHARS(session);
    RewindSessionResponse *reply = NULL;
    int code = tine_rewind_session(tine, NULL, &request, &reply);
    if (reply) protobuf_c_message_free_unpacked(&reply->base, NULL);
    return code;
}

static MessagesForSessionResponse *messages(Fixture *f, const char *session)
{
    return CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
}

static const char *content(const Message *message)
{
    const Part *part = message->parts[0];
    return part->kind_case == PART__KIND_TOOL_RESULT ? part->tool_result->content
                                                     : part->text->text;
}

static void new_session_is_empty(Fixture *f)
{
    const char *session = session_ok(f);
    CHECK_EQ(strlen(session), 26);
    CHECK_EQ(messages(f, session)->n_messages, 0);
}

TEST(tau_new)
{
    on_each_way(new_session_is_empty);
}

static void ids_are_unique(Fixture *f)
{
    const char *first = session_ok(f), *second = session_ok(f);
    CHECK(strcmp(first, second) != 0);
}

TEST(tau_id_unique)
{
    on_each_way(ids_are_unique);
}

static void id_is_stable(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, (TauMessage){.role = ROLE_USER, .content = "a"});
    CHECK_EQ(clear(f->tine, session), 0);
    CHECK_STR(get_ok(f, session)->id, session);
}

TEST(tau_id_stable)
{
    on_each_way(id_is_stable);
}

static const TauMessage WITH_CALL = {
    .role = ROLE_ASSISTANT,
    .content = "I read it",
    .call_id = "call_1",
    .call_name = "read_file",
    .call_arguments = "{\"path\": \"a\"", // not even JSON
    .timestamp = 1234567890123,
};

static void message_comes_back(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, WITH_CALL);
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->n_messages, 1);
    const Message *message = read->messages[0];
    CHECK_EQ(message->role, ROLE_ASSISTANT);
    CHECK_STR(content(message), "I read it");
    CHECK_EQ(message->created_at, 1234567890123); // the caller's, not the store's
    CHECK_EQ(message->n_parts, 2);
    CHECK_STR(message->parts[1]->tool_use->name, "read_file");
    CHECK_STR(message->parts[1]->tool_use->input_text, "{\"path\": \"a\"");
}

TEST(tau_add_message_and_messages)
{
    on_each_way(message_comes_back);
}

static void messages_keep_their_order(Fixture *f)
{
    const char *session = session_ok(f);
    const Role roles[] = {ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL};
    const char *contents[] = {"1", "2", "3", "4"};
    for (size_t i = 0; i < 4; i++) { // later ones are older by the caller's clock
        add_ok(
            f, session,
            (TauMessage){.role = roles[i], .content = contents[i], .timestamp = 1000 - (int64_t)i});
    }
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->n_messages, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_STR(content(read->messages[i]), contents[i]);
        CHECK_EQ(read->messages[i]->role, roles[i]);
        CHECK_EQ(read->messages[i]->sequence, i);
    }
}

TEST(tau_messages_order)
{
    on_each_way(messages_keep_their_order);
}

static void each_role_comes_back(Fixture *f)
{
    const Role roles[] = {ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL};
    for (size_t i = 0; i < 4; i++) {
        const char *session = session_ok(f);
        add_ok(f, session, (TauMessage){.role = roles[i], .content = "x"});
        CHECK_EQ(messages(f, session)->messages[0]->role, roles[i]);
    }
}

TEST(tau_messages_roles)
{
    on_each_way(each_role_comes_back);
}

static void tool_calls_come_back(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, WITH_CALL);
    add_ok(f, session,
           (TauMessage){.role = ROLE_TOOL, .content = "error: none", .tool_call_id = "call_1"});
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_STR(read->messages[0]->parts[1]->tool_use->id, "call_1");
    CHECK_STR(read->messages[1]->parts[0]->tool_result->tool_use_id, "call_1");
    CHECK_STR(content(read->messages[1]), "error: none");
}

TEST(tau_messages_tool_calls)
{
    on_each_way(tool_calls_come_back);
}

static void what_was_read_is_a_copy(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, (TauMessage){.role = ROLE_USER, .content = "a"});
    add_ok(f, session, (TauMessage){.role = ROLE_ASSISTANT, .content = "b"});
    MessagesForSessionResponse *read = messages(f, session);
    read->messages[0]->role = ROLE_SYSTEM;
    read->messages[0]->parts[0]->text->text[0] = 'z';
    MessagesForSessionResponse *again = messages(f, session);
    CHECK_EQ(again->n_messages, 2);
    CHECK_EQ(again->messages[0]->role, ROLE_USER);
    CHECK_STR(content(again->messages[0]), "a");
}

TEST(tau_messages_defensive_copy)
{
    on_each_way(what_was_read_is_a_copy);
}

static void tool_calls_are_copies(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, WITH_CALL);
    messages(f, session)->messages[0]->parts[1]->tool_use->name[0] = 'z';
    CHECK_STR(messages(f, session)->messages[0]->parts[1]->tool_use->name, "read_file");
}

TEST(tau_tool_calls_defensive_copy)
{
    on_each_way(tool_calls_are_copies);
}

static void clear_empties(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, (TauMessage){.role = ROLE_USER, .content = "a"});
    const char *fork = fork_ok(f, session, NULL);
    CHECK_EQ(clear(f->tine, session), 0);
    CHECK_EQ(messages(f, session)->n_messages, 0);
    CHECK_EQ(clear(f->tine, session), 0); // cannot fail
    CHECK_EQ(messages(f, fork)->n_messages, 1);
}

TEST(tau_clear)
{
    on_each_way(clear_empties);
}

static void adding_goes_on_after_clear(Fixture *f)
{
    const char *session = session_ok(f);
    add_ok(f, session, (TauMessage){.role = ROLE_USER, .content = "first"});
    CHECK_EQ(clear(f->tine, session), 0);
    add_ok(f, session, (TauMessage){.role = ROLE_USER, .content = "second"});
    CHECK_STR(history_texts(f, session), "second");
    CHECK_EQ(messages(f, session)->messages[0]->sequence, 1); // never given again
}

TEST(tau_clear_then_add)
{
    on_each_way(adding_goes_on_after_clear);
}

static void thread_add(const SystemThread *thread)
{
    char text[16];
    snprintf(text, sizeof(text), "m%u", thread->number);
    CHECK_EQ(add(thread->tine, thread->context, &(TauMessage){.role = ROLE_USER, .content = text}),
             0);
}

static void hundred_adds(Fixture *f)
{
    const char *session = session_ok(f);
    in_threads(f, THREADS, thread_add, CHARS(session));
    MessagesForSessionResponse *read = messages(f, session);
    CHECK_EQ(read->n_messages, THREADS);
    bool seen[THREADS] = {false};
    for (size_t i = 0; i < THREADS; i++) {
        unsigned number = THREADS;
        CHECK_EQ(read->messages[i]->sequence, i);
        CHECK_EQ(sscanf(content(read->messages[i]), "m%u", &number), 1);
        CHECK(number < THREADS && !seen[number]);
        seen[number] = true;
    }
}

TEST(tau_concurrent_add_message)
{
    on_each_way(hundred_adds);
}

// Reads the history: sequences rise by one, from wherever it begins.
static void read_whole(Tine *tine, const char *session)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = CHARS(session);
    MessagesForSessionResponse *reply = NULL;
    CHECK_EQ(tine_messages_for_session(tine, NULL, &request, &reply), 0);
    for (size_t i = 1; i < reply->n_messages; i++) {
        CHECK_EQ(reply->messages[i]->sequence, reply->messages[i - 1]->sequence + 1);
    }
    protobuf_c_message_free_unpacked(&reply->base, NULL);
}

static void thread_add_or_read(const SystemThread *thread)
{
    if (thread->number % 2) {
        thread_add(thread);
    } else {
        read_whole(thread->tine, thread->context);
    }
}

static void adds_beside_reads(Fixture *f)
{
    const char *session = session_ok(f);
    in_threads(f, 2 * THREADS, thread_add_or_read, CHARS(session));
    CHECK_EQ(messages(f, session)->n_messages, THREADS);
}

TEST(tau_concurrent_add_and_read)
{
    on_each_way(adds_beside_reads);
}

static void thread_add_or_clear(const SystemThread *thread)
{
    if (thread->number % 2) {
        thread_add(thread);
    } else {
        CHECK_EQ(clear(thread->tine, thread->context), 0);
        read_whole(thread->tine, thread->context);
    }
}

static void adds_beside_clears(Fixture *f)
{
    const char *session = session_ok(f);
    in_threads(f, 2 * THREADS, thread_add_or_clear, CHARS(session));
    CHECK_EQ(get_ok(f, session)->next_sequence, THREADS);
    CHECK(messages(f, session)->n_messages <= THREADS);
    read_whole(f->tine, session);
}

TEST(tau_concurrent_add_and_clear)
{
    on_each_way(adds_beside_clears);
}

static void leaves_a_session(Fixture *f)
{
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.limit = 10})->n_sessions, 0);
    add_ok(f, session_ok(f), (TauMessage){.role = ROLE_USER, .content = "a"});
}

TEST(tau_ephemeral_daemon_forgets_all_with_its_end)
{
    in_ephemeral_daemon(leaves_a_session);
    in_ephemeral_daemon(leaves_a_session); // the second one finds nothing
}
