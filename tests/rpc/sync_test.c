// `sync` in the envelope: a relaxed store's answer that waits for the disk.

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

TEST(a_write_that_asks_for_it_is_flushed_with_all_before_it)
{
    Engine *engine = open_relaxed();
    IdText session;
    engine_new_session(engine, NULL, session);
    CHECK(unflushed(engine) > 0);
    SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
    request.session_id = session;
    CHECK_EQ(engine_call_synced(engine, METHOD_SOFT_DELETE_SESSION, &request), ERROR_NONE);
    CHECK_EQ(unflushed(engine), 0);
    engine_close(engine);
}

TEST(a_read_that_asks_for_it_is_answered_after_a_flush)
{
    Engine *engine = open_relaxed();
    IdText session;
    engine_new_session(engine, NULL, session);
    HealthRequest request = HEALTH_REQUEST__INIT;
    CHECK_EQ(engine_call_synced(engine, METHOD_HEALTH, &request), ERROR_NONE);
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
    CHECK_EQ(engine_call_synced(engine, METHOD_GET_SESSION, &request), ERROR_SESSION_NOT_FOUND);
    CHECK(unflushed(engine) > 0);
    engine_close(engine);
}
