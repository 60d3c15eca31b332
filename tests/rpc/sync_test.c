// `sync` in the envelope: a relaxed store's answer that waits for the disk.

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "engine_call.h"

static Engine *open_relaxed(void)
{
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .map_bytes = (size_t)1 << 28,
                                 .flush_ms = FLUSH_MS_MAX, // nothing is flushed by itself
                             }};
    Engine *engine;
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_NONE);
    return engine;
}

static uint64_t unflushed(Engine *engine)
{
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *response;
    CHECK_EQ(engine_call(engine, METHOD_STATS, &request, NULL, &response), ERROR_NONE);
    CHECK(response->is_relaxed);
    uint64_t commits = response->unflushed_commits;
    engine_free(response);
    return commits;
}

static Error call_with_sync(Engine *engine, enum MethodIndex method, const void *request)
{
    Slice bytes = engine_request(method, request, NULL, 0);
    uint8_t *both = malloc(bytes.size + 2);
    CHECK(both != NULL);
    both[0] = 6 << 3; // Request.sync
    both[1] = 1;
    memcpy(both + 2, bytes.bytes, bytes.size);
    Call call;
    call_init(&call);
    call_reset(&call);
    call.request = slice(both, bytes.size + 2);
    engine_run(engine, &call);
    Error error = call.error;
    call_free(&call);
    free(both);
    free((void *)(uintptr_t)bytes.bytes);
    return error;
}

TEST(a_write_that_asks_for_it_is_flushed_with_all_before_it)
{
    Engine *engine = open_relaxed();
    IdText session;
    engine_new_session(engine, NULL, session);
    CHECK(unflushed(engine) > 0);
    SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
    request.session_id = session;
    CHECK_EQ(call_with_sync(engine, METHOD_SOFT_DELETE_SESSION, &request), ERROR_NONE);
    CHECK_EQ(unflushed(engine), 0);
    engine_close(engine);
}

TEST(a_read_that_asks_for_it_is_answered_after_a_flush)
{
    Engine *engine = open_relaxed();
    IdText session;
    engine_new_session(engine, NULL, session);
    HealthRequest request = HEALTH_REQUEST__INIT;
    CHECK_EQ(call_with_sync(engine, METHOD_HEALTH, &request), ERROR_NONE);
    CHECK_EQ(unflushed(engine), 0);
    engine_close(engine);
}

TEST(a_call_that_fails_is_answered_as_ever)
{
    Engine *engine = open_relaxed();
    IdText session;
    engine_new_session(engine, NULL, session);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = "00000000000000000000000001";
    CHECK_EQ(call_with_sync(engine, METHOD_GET_SESSION, &request), ERROR_SESSION_NOT_FOUND);
    CHECK(unflushed(engine) > 0);
    engine_close(engine);
}
