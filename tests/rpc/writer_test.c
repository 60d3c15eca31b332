// The writer: group commit, its limits, and what happens between batches. The writer is held at the
// seam, before a commit, so that what the tests want to meet does meet.

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "gate.h"
#include "os/clock.h"
#include "wire/wire.h"

typedef struct Held {
    Gate gate;
    EngineOptions options;
    Engine *engine;
    IdText session, other;
} Held;

static void held_start(Held *h)
{
    CHECK_EQ(engine_open(&h->options, NULL, &h->engine), ERROR_NONE);
}

static void held_open(Held *h)
{
    gate_init(&h->gate);
    h->options = (EngineOptions){.store = {
                                     .directory = test_dir(),
                                     .is_ephemeral = true,
                                     .map_bytes = (size_t)1 << 28,
                                     .seam = gate_seam(&h->gate),
                                 }};
    held_start(h);
    engine_new_session(h->engine, NULL, h->session);
    engine_new_session(h->engine, NULL, h->other);
}

// Holds the writer in the middle of a batch of one call.
static PendingCall *hold(Held *h)
{
    gate_close(&h->gate);
    PendingCall *holding = pending_append(h->engine, h->session, "holds the writer", 0);
    gate_wait_held(&h->gate);
    return holding;
}

static WriterStats stats_of(Held *h)
{
    WriterStats stats;
    engine_writer_stats(h->engine, &stats);
    return stats;
}

static uint64_t purges_pending(Held *h)
{
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *response;
    CHECK_EQ(engine_call(h->engine, METHOD_STATS, &request, NULL, &response), ERROR_NONE);
    uint64_t pending = response->purges_pending;
    engine_free(response);
    return pending;
}

// A write that finds nothing to do: small in the queue.
static PendingCall *pending_nothing(Held *h)
{
    RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
    request.session_id = h->session;
    return pending_submit(h->engine, METHOD_RESTORE_SESSION, &request, 0);
}

TEST(lone_calls_have_a_batch_each)
{
    Held h;
    held_open(&h);
    WriterStats before = stats_of(&h);
    for (int i = 0; i < 20; i++)
        engine_append_text(h.engine, h.session, "alone", NULL);
    WriterStats after = stats_of(&h);
    CHECK_EQ(after.batches - before.batches, 20);
    CHECK_EQ(after.requests - before.requests, 20);
    CHECK_EQ(after.batches_rerun, 0);
    engine_close(h.engine);
}

static void gather(size_t count, uint64_t batches)
{
    Held h;
    held_open(&h);
    WriterStats before = stats_of(&h);
    PendingCall *holding = hold(&h);
    PendingCall *pending[2 * BATCH_REQUESTS_MAX];
    for (size_t i = 0; i < count; i++) {
        pending[i] = pending_append(h.engine, i % 2 ? h.session : h.other, "in company", 0);
    }
    CHECK_EQ(stats_of(&h).queued_requests, count);
    CHECK(stats_of(&h).queued_bytes > count);
    for (size_t i = 0; i < count; i++)
        CHECK(!pending_is_done(pending[i]));
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(pending_wait(pending[i]), ERROR_NONE);

    WriterStats after = stats_of(&h);
    CHECK_EQ(after.batches - before.batches, 1 + batches);
    CHECK_EQ(after.requests - before.requests, 1 + count);
    CHECK_EQ(after.queued_requests, 0);
    CHECK_EQ(after.queued_bytes, 0);
    CHECK_CLEAN(h.engine);
    engine_close(h.engine);
}

TEST(calls_that_wait_for_a_commit_share_the_next)
{
    gather(BATCH_REQUESTS_MAX, 1);
}

TEST(batch_takes_no_more_than_its_limit_of_calls)
{
    gather(BATCH_REQUESTS_MAX + 1, 2);
}

TEST(large_call_comes_alone)
{
    Held h;
    held_open(&h);
    WriterStats before = stats_of(&h);
    PendingCall *holding = hold(&h);
    char *text = malloc(BATCH_BYTES_MAX + 1);
    CHECK(text != NULL);
    memset(text, 'x', BATCH_BYTES_MAX);
    text[BATCH_BYTES_MAX] = '\0';
    PendingCall *small = pending_append(h.engine, h.session, "small", 0);
    PendingCall *large = pending_append(h.engine, h.session, text, 0);
    PendingCall *last = pending_append(h.engine, h.session, "small again", 0);
    free(text);
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(small), ERROR_NONE);
    CHECK_EQ(pending_wait(large), ERROR_NONE);
    CHECK_EQ(pending_wait(last), ERROR_NONE);
    CHECK_EQ(stats_of(&h).batches - before.batches, 4);
    engine_close(h.engine);
}

TEST(queue_refuses_calls_over_its_limit)
{
    Held h;
    held_open(&h);
    PendingCall *holding = hold(&h);
    PendingCall **pending = calloc(QUEUE_REQUESTS_MAX, sizeof(PendingCall *));
    CHECK(pending != NULL);
    for (size_t i = 0; i < QUEUE_REQUESTS_MAX; i++)
        pending[i] = pending_nothing(&h);
    CHECK_EQ(stats_of(&h).queued_requests, QUEUE_REQUESTS_MAX);
    CHECK_EQ(pending_wait(pending_nothing(&h)), ERROR_QUEUE_FULL);
    CHECK_EQ(stats_of(&h).queued_requests, QUEUE_REQUESTS_MAX);
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    for (size_t i = 0; i < QUEUE_REQUESTS_MAX; i++) {
        CHECK_EQ(pending_wait(pending[i]), ERROR_NONE);
    }
    CHECK_EQ(pending_wait(pending_nothing(&h)), ERROR_NONE);
    free(pending);
    engine_close(h.engine);
}

// A small call inside a request of the greatest size: a field that nobody reads fills it up.
static uint8_t *padded_request(Held *h)
{
    enum { PADDING_FIELD = 500 };
    RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
    request.session_id = h->session;
    Slice bytes = engine_request(METHOD_RESTORE_SESSION, &request, NULL, 0);
    uint8_t *padded = calloc(1, REQUEST_BYTES_MAX);
    CHECK(padded != NULL);
    memcpy(padded, bytes.bytes, bytes.size);
    size_t size = bytes.size + wire_put_tag(padded + bytes.size, PADDING_FIELD, WIRE_BYTES);
    size_t rest = REQUEST_BYTES_MAX - size;
    rest -= wire_varint_size(rest);
    size += wire_put_varint(padded + size, rest);
    CHECK_EQ(size + rest, REQUEST_BYTES_MAX);
    free((void *)(uintptr_t)bytes.bytes);
    return padded;
}

TEST(queue_refuses_bytes_over_its_limit)
{
    enum { FITTING = QUEUE_BYTES_MAX / REQUEST_BYTES_MAX };
    Held h;
    held_open(&h);
    PendingCall *holding = hold(&h);
    uint8_t *padded = padded_request(&h);
    Slice request = slice(padded, REQUEST_BYTES_MAX);
    PendingCall *pending[FITTING];
    for (size_t i = 0; i < FITTING; i++)
        pending[i] = pending_send(h.engine, request);
    CHECK_EQ(stats_of(&h).queued_bytes, QUEUE_BYTES_MAX);
    CHECK_EQ(pending_wait(pending_nothing(&h)), ERROR_QUEUE_FULL);
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    for (size_t i = 0; i < FITTING; i++)
        CHECK_EQ(pending_wait(pending[i]), ERROR_NONE);
    free(padded);
    engine_close(h.engine);
}

TEST(timeout_cancels_what_has_not_begun_and_never_what_has)
{
    Held h;
    held_open(&h);
    gate_close(&h.gate);
    PendingCall *begun = pending_append(h.engine, h.session, "has begun", HARNESS_PATIENCE_MS);
    gate_wait_held(&h.gate);
    PendingCall *late = pending_append(h.engine, h.session, "too late", 1);
    PendingCall *patient = pending_append(h.engine, h.session, "in time", HARNESS_PATIENCE_MS);
    int64_t until_ns = clock_monotonic_ns() + 2 * 1000000;
    while (clock_monotonic_ns() < until_ns)
        sched_yield();
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(begun), ERROR_NONE);
    CHECK_EQ(pending_wait(late), ERROR_DEADLINE_EXCEEDED);
    CHECK_EQ(pending_wait(patient), ERROR_NONE);
    CHECK_EQ(stats_of(&h).batches_rerun, 0);
    CHECK_CLEAN(h.engine);
    engine_close(h.engine);
}

TEST(call_whose_time_passes_while_it_commits_is_answered)
{
    Held h;
    held_open(&h);
    gate_close(&h.gate);
    // It has some time to begin in, more if the machine was too busy for that; then the gate holds
    // it until that time is over.
    int64_t timeout_ms = 50;
    PendingCall *begun = pending_append(h.engine, h.session, "slow", timeout_ms);
    while (!gate_is_holding(&h.gate)) {
        sched_yield();
        if (!pending_is_done(begun)) continue;
        CHECK_EQ(pending_wait(begun), ERROR_DEADLINE_EXCEEDED);
        timeout_ms *= 2;
        begun = pending_append(h.engine, h.session, "slow", timeout_ms);
    }
    int64_t until_ns = clock_monotonic_ns() + (timeout_ms + 1) * 1000000;
    while (clock_monotonic_ns() < until_ns)
        sched_yield();
    gate_open(&h.gate);
    CHECK_EQ(pending_wait(begun), ERROR_NONE);
    engine_close(h.engine);
}

static atomic_bool is_closer_running;

static void *close_engine(void *context)
{
    atomic_store(&is_closer_running, true);
    engine_close(((Held *)context)->engine);
    return NULL;
}

// Begins to close the engine, which waits for the writer at the gate, and returns once it has
// begun.
static pthread_t close_while_held(Held *h)
{
    pthread_t closer;
    atomic_store(&is_closer_running, false);
    CHECK_EQ(pthread_create(&closer, NULL, close_engine, h), 0);
    while (!atomic_load(&is_closer_running))
        sched_yield(); // before the queue is full of probes
    // Only a call can tell whether the writer takes calls: those it still takes are answered.
    enum { PROBES_MAX = QUEUE_REQUESTS_MAX - 16 };
    static PendingCall *probes[PROBES_MAX];
    size_t count = 0;
    for (bool is_stopping = false; !is_stopping;) {
        CHECK(count < PROBES_MAX);
        PendingCall *probe = pending_nothing(h);
        is_stopping = pending_is_done(probe);
        probes[count++] = probe;
        sched_yield();
    }
    CHECK_EQ(pending_wait(probes[--count]), ERROR_UNAVAILABLE);
    gate_open(&h->gate);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(pending_wait(probes[i]), ERROR_NONE);
    return closer;
}

TEST(closing_answers_what_is_queued_and_refuses_what_comes)
{
    Held h;
    held_open(&h);
    PendingCall *holding = hold(&h);
    PendingCall *queued = pending_append(h.engine, h.session, "queued in time", 0);
    pthread_t closer = close_while_held(&h);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(queued), ERROR_NONE);
    pthread_join(closer, NULL);
    held_start(&h);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = h.session;
    GetSessionResponse *response;
    CHECK_EQ(engine_call(h.engine, METHOD_GET_SESSION, &request, NULL, &response), ERROR_NONE);
    CHECK_EQ(response->session->entry_count, 2);
    engine_free(response);
    CHECK_CLEAN(h.engine);
    engine_close(h.engine);
}

static PendingCall *pending_purge(Held *h, const char *session)
{
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    return pending_submit(h->engine, METHOD_PURGE_SESSION, &request, 0);
}

static void fill_for_slices(Held *h, unsigned slices)
{
    // Two rows an entry, the message and its owner.
    for (unsigned i = 0; i < slices * PURGE_SLICE_ROWS / 2; i++) {
        engine_append_text(h->engine, h->other, "one of many", NULL);
    }
}

TEST(purge_runs_in_slices_between_batches)
{
    Held h;
    held_open(&h);
    fill_for_slices(&h, 3);
    gate_close(&h.gate);
    PendingCall *purge = pending_purge(&h, h.other);
    gate_wait_held(&h.gate);
    PendingCall *between = pending_append(h.engine, h.session, "between two slices", 0);
    gate_let_one_through(&h.gate); // the purge
    gate_wait_held(&h.gate);
    CHECK_EQ(pending_wait(purge), ERROR_NONE);
    CHECK(!pending_is_done(between));
    gate_let_one_through(&h.gate); // the first slice
    gate_wait_held(&h.gate);
    CHECK(!pending_is_done(between));
    gate_let_one_through(&h.gate); // the append
    gate_wait_held(&h.gate);
    CHECK_EQ(pending_wait(between), ERROR_NONE);
    CHECK_EQ(purges_pending(&h), 1);
    CHECK_CLEAN(h.engine);
    gate_open(&h.gate);
    while (purges_pending(&h) > 0)
        sched_yield(); // it needs no call to go on
    CHECK_CLEAN(h.engine);
    engine_close(h.engine);
}

TEST(purge_goes_on_after_reopening)
{
    Held h;
    held_open(&h);
    fill_for_slices(&h, 3);
    gate_close(&h.gate);
    PendingCall *purge = pending_purge(&h, h.other);
    gate_wait_held(&h.gate);
    gate_let_one_through(&h.gate);
    gate_wait_held(&h.gate); // in its first slice
    CHECK_EQ(pending_wait(purge), ERROR_NONE);
    pthread_join(close_while_held(&h), NULL);

    gate_close(&h.gate);
    held_start(&h);
    gate_wait_held(&h.gate); // without a call
    CHECK_EQ(purges_pending(&h), 1);
    CHECK_CLEAN(h.engine);
    gate_open(&h.gate);
    while (purges_pending(&h) > 0)
        sched_yield();
    CHECK_CLEAN(h.engine);
    engine_close(h.engine);
}
