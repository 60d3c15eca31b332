// Waiting calls: whose turn it is, and what a call that is run again and again costs.

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/limits.h"
#include "gate.h"
#include "rpc/waiting.h"

// One call that is woken again and again: whenever it runs there is news that is not for it. And
// one that was there before.
static struct {
    Waiting *waiting;
    Rpc patient, restless;
    uint64_t newest;
    bool is_patient_done; // the thread's own
    sem_t ended;
} turns;

static void turn_run(Rpc *call, bool is_last)
{
    if (call == &turns.patient || turns.is_patient_done || is_last) {
        if (call == &turns.patient) turns.is_patient_done = true;
        sem_post(&turns.ended);
        return;
    }
    call->wait_after = turns.newest;
    waiting_news(turns.waiting, ++turns.newest);
    if (!waiting_park(turns.waiting, call)) sem_post(&turns.ended);
}

static void turn_park(Rpc *call)
{
    call->wait_after = 1;
    call->wait_until_ns = INT64_MAX;
    CHECK(waiting_park(turns.waiting, call));
}

TEST(a_call_that_is_woken_again_and_again_keeps_no_other_from_its_turn)
{
    CHECK_EQ(sem_init(&turns.ended, 0, 0), 0);
    turns.newest = 1;
    CHECK_EQ(waiting_start(1, turn_run, NULL, &turns.waiting), ERROR_NONE);
    turn_park(&turns.patient);
    turn_park(&turns.restless);
    turns.newest = 2;
    waiting_news(turns.waiting, 2);
    CHECK_EQ(sem_wait(&turns.ended), 0);
    CHECK_EQ(sem_wait(&turns.ended), 0);
    waiting_stop(turns.waiting);
    CHECK(turns.is_patient_done);
}

static Engine *engine_make(void)
{
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .is_ephemeral = true,
                                 .map_bytes = (size_t)1 << 28,
                             }};
    Engine *engine;
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_NONE);
    return engine;
}

static void publish(Engine *engine, const char *session, size_t count)
{
    enum { AT_ONCE = 32 };
    PublishEventRequest request = PUBLISH_EVENT_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.type = (char *)(uintptr_t) "mine";
    PendingCall *calls[AT_ONCE];
    for (size_t done = 0; done < count;) {
        size_t taken = 0;
        while (taken < AT_ONCE && done + taken < count)
            calls[taken++] = pending_submit(engine, METHOD_PUBLISH_EVENT, &request, 0);
        for (size_t i = 0; i < taken; i++)
            CHECK_EQ(pending_wait(calls[i]), ERROR_NONE);
        done += taken;
    }
}

static void reply_keep(Rpc *call)
{
    CHECK_EQ(sem_post(call->context), 0);
}

// Of another session there come more events than a page scans.
TEST(a_call_that_waits_for_its_session_does_not_mind_what_others_do)
{
    Engine *engine = engine_make();
    IdText mine, other;
    engine_new_session(engine, NULL, mine);
    engine_new_session(engine, NULL, other);
    ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
    request.session_id = mine;
    request.after_sequence = 2;
    request.wait_ms = WAIT_MS_MAX;
    Slice bytes = engine_request(METHOD_LIST_EVENTS, &request, NULL, 0);
    sem_t done;
    CHECK_EQ(sem_init(&done, 0, 0), 0);
    Rpc call;
    rpc_init(&call);
    rpc_reset(&call);
    call.request = bytes;
    call.on_done = reply_keep;
    call.context = &done;
    engine_submit(engine, &call);

    publish(engine, other, SCANNED_RECORDS_MAX + 100);
    CHECK(sem_trywait(&done) != 0);
    publish(engine, mine, 1);
    CHECK_EQ(sem_wait(&done), 0);
    CHECK_EQ(call.error, ERROR_NONE);
    // Field 1 of the body is the event; the envelope is a tag and a length.
    CHECK(buffer_size(&call.reply) > 0);
    CHECK(memmem(buffer_slice(&call.reply).bytes, buffer_size(&call.reply), mine, 26) != NULL);
    CHECK(call.arena.used_bytes < 16 * 1024);
    rpc_free(&call);
    free((void *)(uintptr_t)bytes.bytes);
    engine_close(engine);
    sem_destroy(&done);
}
