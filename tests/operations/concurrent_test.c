// Many callers at once: what the batches of the writer must not mix up.

#include <pthread.h>
#include <stdio.h>

#include "entries.h"

enum { CALLERS = 8 };

// One thread that makes calls; each has its own requests, and counts what came of them.
typedef struct Caller {
    Fixture *f;
    pthread_t thread;
    pthread_barrier_t *start;
    const char *session;
    const char *expected_head; // NULL: none
    const char *operation_id;  // NULL: none
    const char *external_id;   // NULL: none
    size_t calls;
    size_t accepted, refused;
    char reason[64]; // of the last refusal
    char id[32];     // of the last entry
} Caller;

static void call_append(Caller *caller)
{
    Text text = {.text = "m"};
    Part part = {.kind_case = PART__KIND_TEXT, .text = &text};
    Part *parts[] = {&part};
    External external = {.source = "pi", .id = CHARS(caller->external_id)};
    NewMessage message = {.role = ROLE_USER, .n_parts = 1, .parts = parts};
    if (caller->external_id) message.external = &external;
    AppendMessageRequest request = {.session_id = CHARS(caller->session), .message = &message};
    request.base.descriptor = &append_message_request__descriptor;
    if (caller->expected_head) {
        request.expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
        request.expected_head_id = CHARS(caller->expected_head);
    }
    fixture_fill(&request.base);
    TineStatus status;
    TineCallOptions options = {.operation_id = caller->operation_id, .out_status = &status};
    AppendMessageResponse *response;
    if (tine_append_message(caller->f->tine, &options, &request, &response) != STATUS_OK) {
        snprintf(caller->reason, sizeof(caller->reason), "%s", status.reason);
        caller->refused++;
        return;
    }
    snprintf(caller->id, sizeof(caller->id), "%s", response->receipt->id);
    protobuf_c_message_free_unpacked(&response->base, NULL);
    caller->accepted++;
}

static void *caller_main(void *context)
{
    Caller *caller = context;
    pthread_barrier_wait(caller->start);
    for (size_t i = 0; i < caller->calls; i++)
        call_append(caller);
    return NULL;
}

// Runs the callers, which start together.
static void callers_run(Fixture *f, Caller callers[CALLERS])
{
    pthread_barrier_t start;
    CHECK_EQ(pthread_barrier_init(&start, NULL, CALLERS), 0);
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i].f = f;
        callers[i].start = &start;
        CHECK_EQ(pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++)
        CHECK_EQ(pthread_join(callers[i].thread, NULL), 0);
    pthread_barrier_destroy(&start);
}

TEST(concurrent_appends_make_one_gapless_log)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    size_t calls = test_scaled(200);
    Caller callers[CALLERS] = {0};
    for (size_t i = 0; i < CALLERS; i++) {
        // Every other caller's calls are refused, in the middle of the others' batches.
        callers[i].session = i % 2 ? session : UNKNOWN_ID;
        callers[i].calls = calls;
    }
    callers_run(f, callers);
    MessagesForSessionRequest request = {.session_id = CHARS(session)};
    uint64_t sequence = 0;
    const char *previous = "";
    do {
        MessagesForSessionResponse *page =
            CALL_OK(f, messages_for_session, MessagesForSession, request);
        for (size_t i = 0; i < page->n_messages; i++) {
            CHECK_EQ(page->messages[i]->sequence, sequence++);
            CHECK_STR(page->messages[i]->parent_id, previous);
            CHECK(strcmp(previous, page->messages[i]->id) < 0);
            previous = page->messages[i]->id;
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    CHECK_EQ(sequence, calls * CALLERS / 2);
    CHECK_EQ(get_ok(f, session)->entry_count, sequence);
    CHECK_EQ(newest_sequence(f), 1 + sequence);
    for (size_t i = 0; i < CALLERS; i++)
        CHECK_EQ(callers[i].accepted, i % 2 ? calls : 0);
}

TEST(concurrent_appends_after_one_head_let_one_win)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t round = 0; round < test_scaled(40); round++) {
        // The empty id of the first round is protobuf-c's own "", which it would not pack.
        const char *head = get_ok(f, session)->head_id;
        Caller callers[CALLERS] = {0};
        size_t accepted = 0;
        for (size_t i = 0; i < CALLERS; i++) {
            callers[i] = (Caller){.session = session, .expected_head = head, .calls = 1};
        }
        callers_run(f, callers);
        for (size_t i = 0; i < CALLERS; i++) {
            accepted += callers[i].accepted;
            if (callers[i].refused) CHECK_STR(callers[i].reason, "HEAD_MOVED");
        }
        CHECK_EQ(accepted, 1);
        CHECK_EQ(get_ok(f, session)->entry_count, round + 1);
    }
}

TEST(concurrent_calls_with_one_operation_id_run_once)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t round = 0; round < test_scaled(40); round++) {
        char operation_id[32];
        snprintf(operation_id, sizeof(operation_id), "op-%zu", round);
        Caller callers[CALLERS] = {0};
        for (size_t i = 0; i < CALLERS; i++) {
            callers[i] = (Caller){.session = session, .operation_id = operation_id, .calls = 1};
        }
        callers_run(f, callers);
        for (size_t i = 0; i < CALLERS; i++) {
            CHECK_EQ(callers[i].accepted, 1);
            CHECK_STR(callers[i].id, callers[0].id);
        }
        CHECK_EQ(get_ok(f, session)->entry_count, round + 1);
    }
}

TEST(concurrent_appends_of_one_external_id_let_one_win)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t round = 0; round < test_scaled(40); round++) {
        char external_id[32];
        snprintf(external_id, sizeof(external_id), "%zu", round);
        Caller callers[CALLERS] = {0};
        size_t accepted = 0;
        for (size_t i = 0; i < CALLERS; i++) {
            callers[i] = (Caller){.session = session, .external_id = external_id, .calls = 1};
        }
        callers_run(f, callers);
        for (size_t i = 0; i < CALLERS; i++) {
            accepted += callers[i].accepted;
            if (callers[i].refused) CHECK_STR(callers[i].reason, "EXTERNAL_TAKEN");
        }
        CHECK_EQ(accepted, 1);
    }
}
