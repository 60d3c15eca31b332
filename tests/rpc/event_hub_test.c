// The hub: what a listener hears of each batch, and what becomes of one who does not listen.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate.h"
#include "os/clock.h"
#include "rpc/event_hub.h"

typedef struct Heard {
    Gate gate;
    Engine *engine;
    IdText session;
    EventQueue *queue;
    EventBatch batch;
} Heard;

static void heard_open(Heard *h)
{
    *h = (Heard){.engine = NULL};
    gate_init(&h->gate);
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .is_ephemeral = true,
                                 .map_bytes = (size_t)1 << 28,
                                 .seam = gate_seam(&h->gate),
                             }};
    CHECK_EQ(engine_open(&options, NULL, &h->engine), ERROR_NONE);
    engine_new_session(h->engine, NULL, h->session); // event 1
    CHECK_EQ(event_queue_open(engine_events(h->engine), 0, &h->queue), ERROR_NONE);
}

static void heard_close(Heard *h)
{
    event_queue_close(h->queue);
    event_batch_free(&h->batch);
    engine_close(h->engine);
}

static PendingCall *hold(Heard *h)
{
    gate_close(&h->gate);
    PendingCall *holding = pending_append(h->engine, h->session, "holds the writer", 0); // event 2
    gate_wait_held(&h->gate);
    return holding;
}

static PendingCall *pending_broadcast(Heard *h, const char *type, int64_t timeout_ms)
{
    BroadcastEventRequest request = BROADCAST_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    return pending_submit(h->engine, METHOD_BROADCAST_EVENT, &request, timeout_ms);
}

static PendingCall *pending_external(Heard *h)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    External external = EXTERNAL__INIT;
    external.source = "pi";
    external.id = "entry-1";
    message.role = ROLE_USER;
    message.external = &external;
    request.session_id = h->session;
    request.message = &message;
    return pending_submit(h->engine, METHOD_APPEND_MESSAGE, &request, 0);
}

static Event *event_of(Slice bytes)
{
    Event *event =
        (Event *)protobuf_c_message_unpack(&event__descriptor, NULL, bytes.size, bytes.bytes);
    CHECK(event != NULL);
    return event;
}

// All that was heard and is there now: the sequences of kept events, the types of the others.
static const char *heard_now(Heard *h)
{
    static char text[512];
    text[0] = '\0';
    (void)event_queue_take(h->queue, 0, &h->batch);
    HubEvent next;
    while (event_batch_next(&h->batch, &next)) {
        Event *event = event_of(next.event);
        size_t size = strlen(text);
        if (event->sequence) {
            snprintf(text + size, sizeof(text) - size, "%d ", (int)event->sequence);
        } else {
            snprintf(text + size, sizeof(text) - size, "%s ", event->type);
        }
        protobuf_c_message_free_unpacked(&event->base, NULL);
    }
    return text;
}

TEST(a_batch_is_heard_whole_in_order_and_after_its_commit)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    PendingCall *holding = hold(&h);
    PendingCall *calls[] = {
        pending_broadcast(&h, "a", 0),
        pending_append(h.engine, h.session, "1", 0),
        pending_broadcast(&h, "b", 0),
        pending_broadcast(&h, "c", 0),
        pending_append(h.engine, h.session, "2", 0),
    };
    CHECK_STR(heard_now(&h), "");
    gate_let_one_through(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_STR(heard_now(&h), "2 ");
    gate_wait_held(&h.gate); // they have run, and their commit is not made
    CHECK_STR(heard_now(&h), "");
    CHECK_EQ(h.batch.newest_sequence, 2);
    gate_open(&h.gate);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        CHECK_EQ(pending_wait(calls[i]), ERROR_NONE);
    CHECK_STR(heard_now(&h), "a 3 b c 4 ");
    CHECK_EQ(h.batch.newest_sequence, 4);
}

TEST(nothing_of_an_aborted_batch_is_heard)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    PendingCall *holding = hold(&h);
    PendingCall *before = pending_broadcast(&h, "before", 0);
    PendingCall *first = pending_append(h.engine, h.session, "1", 0);
    PendingCall *failing = pending_external(&h);
    PendingCall *after = pending_broadcast(&h, "after", 0);
    PendingCall *last = pending_append(h.engine, h.session, "2", 0);
    gate_fail_puts(&h.gate, TABLE_MESSAGE_EXTERNAL, ERROR_STORE_FULL);
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(before), ERROR_NONE);
    CHECK_EQ(pending_wait(first), ERROR_NONE);
    CHECK_EQ(pending_wait(failing), ERROR_STORE_FULL);
    CHECK_EQ(pending_wait(after), ERROR_NONE);
    CHECK_EQ(pending_wait(last), ERROR_NONE);
    WriterStats stats;
    engine_writer_stats(h.engine, &stats);
    CHECK_EQ(stats.batches_rerun, 1);
    CHECK_STR(heard_now(&h), "2 before 3 after 4 ");
}

TEST(a_call_that_failed_is_not_heard)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    PendingCall *holding = hold(&h);
    PendingCall *late = pending_broadcast(&h, "late", 1);
    PendingCall *nowhere = pending_append(h.engine, "00000000000000000000000001", "nowhere", 0);
    PendingCall *good = pending_broadcast(&h, "good", 0);
    int64_t past_ns = clock_monotonic_ns() + 2 * 1000000;
    while (clock_monotonic_ns() < past_ns)
        continue;
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(late), ERROR_DEADLINE_EXCEEDED);
    CHECK_EQ(pending_wait(nowhere), ERROR_SESSION_NOT_FOUND);
    CHECK_EQ(pending_wait(good), ERROR_NONE);
    CHECK_STR(heard_now(&h), "2 good ");
}

TEST(a_batch_that_only_broadcasts_commits_nothing)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    gate_close(&h.gate); // a commit would wait here
    CHECK_EQ(pending_wait(pending_broadcast(&h, "a", 0)), ERROR_NONE);
    CHECK_STR(heard_now(&h), "a ");
    gate_open(&h.gate);
}

TEST(who_comes_while_a_batch_is_being_committed_hears_it)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    event_queue_close(h.queue);
    PendingCall *holding = hold(&h);
    CHECK_EQ(event_queue_open(engine_events(h.engine), 0, &h.queue), ERROR_NONE);
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_STR(heard_now(&h), "2 ");
}

TEST(what_does_not_fit_is_one_gap_and_is_told)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    EventQueue *small;
    EventBatch batch = {.read_bytes = 0};
    HubEvent next;
    CHECK_EQ(event_queue_open(engine_events(h.engine), 1000, &small), ERROR_NONE);
    for (int i = 0; i < 20; i++)
        engine_append_text(h.engine, h.session, "m", NULL);
    CHECK(event_queue_take(small, 0, &batch));
    CHECK(batch.has_lost);
    CHECK_EQ(batch.newest_sequence, 21);
    uint64_t expected = 2;
    while (event_batch_next(&batch, &next)) {
        Event *event = event_of(next.event);
        CHECK_EQ(event->sequence, expected++);
        protobuf_c_message_free_unpacked(&event->base, NULL);
    }
    CHECK(expected > 2 && expected < 22);

    engine_append_text(h.engine, h.session, "after the gap", NULL);
    CHECK(event_queue_take(small, 0, &batch));
    CHECK(!batch.has_lost);
    CHECK(event_batch_next(&batch, &next));
    CHECK(!event_batch_next(&batch, &next));
    event_queue_close(small);

    CHECK_EQ(event_queue_open(engine_events(h.engine), 1, &small), ERROR_NONE);
    engine_append_text(h.engine, h.session, "larger than the queue", NULL);
    CHECK(event_queue_take(small, 0, &batch));
    CHECK(batch.has_lost);
    CHECK(!event_batch_next(&batch, &next));
    event_queue_close(small);
    event_batch_free(&batch);
    CHECK(event_queue_take(h.queue, 0, &h.batch)); // the others lost nothing
    CHECK(!h.batch.has_lost);
}

TEST(a_queue_that_is_off_gets_nothing_but_the_newest_sequence)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    engine_append_text(h.engine, h.session, "dropped", NULL);
    event_queue_turn(h.queue, false);
    engine_append_text(h.engine, h.session, "not heard", NULL);
    CHECK_STR(heard_now(&h), "");
    CHECK_EQ(h.batch.newest_sequence, 3);
    event_queue_turn(h.queue, true);
    engine_append_text(h.engine, h.session, "heard", NULL);
    CHECK_STR(heard_now(&h), "4 ");
}

TEST(a_wake_ends_one_take)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    event_queue_wake(h.queue);
    CHECK(!event_queue_take(h.queue, INT64_MAX, &h.batch));
    CHECK_EQ(h.batch.newest_sequence, 1);
    engine_append_text(h.engine, h.session, "m", NULL);
    event_queue_wake(h.queue);
    CHECK(event_queue_take(h.queue, INT64_MAX, &h.batch));
}

// Reads what each event tells of, as soon as it hears it.
static void *read_each(void *context)
{
    Heard *h = context;
    uint64_t expected = 2, count = test_scaled(2000);
    while (expected < 2 + count) {
        HubEvent next;
        if (!event_batch_next(&h->batch, &next)) {
            CHECK(event_queue_take(h->queue, INT64_MAX, &h->batch));
            continue;
        }
        Event *event = event_of(next.event);
        CHECK_EQ(event->sequence, expected++);
        GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
        request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
        request.message_id = event->message_id;
        GetMessageResponse *response;
        CHECK_EQ(engine_call(h->engine, METHOD_GET_MESSAGE, &request, NULL, &response), ERROR_NONE);
        engine_free(response);
        protobuf_c_message_free_unpacked(&event->base, NULL);
    }
    return NULL;
}

TEST(what_is_heard_can_be_read)
{
    CLEANUP(heard_close) Heard h;
    heard_open(&h);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, read_each, &h), 0);
    uint64_t count = test_scaled(2000);
    PendingCall *pending[8] = {NULL};
    for (uint64_t i = 0; i < count; i++) {
        PendingCall **slot = &pending[i % 8];
        if (*slot) CHECK_EQ(pending_wait(*slot), ERROR_NONE);
        *slot = pending_append(h.engine, h.session, "m", 0);
    }
    for (size_t i = 0; i < 8; i++) {
        if (pending[i]) CHECK_EQ(pending_wait(pending[i]), ERROR_NONE);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
