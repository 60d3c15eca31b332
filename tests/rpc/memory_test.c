// Requests while malloc fails: the answer is that the server has no memory, never that the request
// is wrong.

#include <stdlib.h>

#include "engine_call.h"

// The test is linked with --wrap=malloc.
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static _Thread_local size_t mallocs_until_failure; // 0: none fails

void *__wrap_malloc(size_t size)
{
    if (mallocs_until_failure > 0 && --mallocs_until_failure == 0) return NULL;
    return __real_malloc(size);
}

// Runs a request on this thread; the nth malloc fails. Returns whether there were that many.
static bool run_with_failure(Engine *engine, Slice request, size_t nth, Error *out)
{
    Rpc rpc;
    rpc_init(&rpc);
    rpc_reset(&rpc);
    rpc.request = request;
    mallocs_until_failure = nth;
    engine_run(engine, &rpc);
    bool has_failed = mallocs_until_failure == 0;
    mallocs_until_failure = 0;
    *out = rpc.error;
    rpc_free(&rpc);
    return has_failed;
}

static void check_each_failure(Engine *engine, Slice request)
{
    size_t nth = 1;
    Error error;
    for (; run_with_failure(engine, request, nth, &error); nth++)
        CHECK_EQ(error, ERROR_OUT_OF_MEMORY);
    CHECK(nth > 1);
    CHECK_EQ(error, ERROR_NONE);
    free((void *)(uintptr_t)request.bytes);
}

TEST(a_request_that_finds_no_memory_to_be_decoded_in_is_told_so)
{
    EngineOptions options = {.store = {.directory = test_dir(), .map_bytes = (size_t)1 << 28}};
    Engine *engine;
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_NONE);
    IdText session;
    engine_new_session(engine, NULL, session);

    GetSessionRequest read = GET_SESSION_REQUEST__INIT;
    read.session_id = session;
    check_each_failure(engine, engine_request(METHOD_GET_SESSION, &read, NULL, 0));
    RenameSessionRequest write = RENAME_SESSION_REQUEST__INIT;
    write.session_id = session;
    write.slug = "renamed";
    check_each_failure(engine, engine_request(METHOD_RENAME_SESSION, &write, NULL, 0));
    engine_close(engine);
}
