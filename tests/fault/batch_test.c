// Group commit under failure: one call's failure is never another's.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "fault.h"
#include "gate.h"
#include "report/log.h"

typedef struct Batching {
    Gate gate;
    Engine *engine;
    IdText session, other;
} Batching;

static void batching_open(Batching *b)
{
    gate_init(&b->gate);
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .is_ephemeral = true,
                                 .map_bytes = (size_t)1 << 28,
                                 .seam = gate_seam(&b->gate),
                             }};
    log_configure(LOG_OFF, STDERR_FILENO);
    CHECK_EQ(engine_open(&options, NULL, &b->engine), ERROR_NONE);
    engine_new_session(b->engine, NULL, b->session);
    engine_new_session(b->engine, NULL, b->other);
}

static PendingCall *pending_memory(Batching *b)
{
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    NewMemory memory = NEW_MEMORY__INIT;
    memory.content = "a fact";
    request.session_id = b->other;
    request.memory = &memory;
    return pending_submit(b->engine, METHOD_REMEMBER_SESSION_MEMORY, &request, 0);
}

// Its external id is put after the message and its owner.
static PendingCall *pending_external(Batching *b)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    External external = EXTERNAL__INIT;
    external.source = "pi";
    external.id = "entry-1";
    message.role = ROLE_USER;
    message.external = &external;
    request.session_id = b->session;
    request.message = &message;
    return pending_submit(b->engine, METHOD_APPEND_MESSAGE, &request, 0);
}

static uint64_t entry_count(Batching *b)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = b->session;
    GetSessionResponse *response;
    CHECK_EQ(engine_call(b->engine, METHOD_GET_SESSION, &request, NULL, &response), ERROR_NONE);
    uint64_t count = response->session->entry_count;
    engine_free(response);
    return count;
}

static void one_fails_after_its_first_put(Error error)
{
    Batching b;
    batching_open(&b);
    gate_close(&b.gate);
    PendingCall *holding = pending_append(b.engine, b.session, "holds the writer", 0);
    gate_wait_held(&b.gate);
    PendingCall *first = pending_append(b.engine, b.session, "one", 0);
    PendingCall *failing = pending_external(&b);
    PendingCall *memory = pending_memory(&b);
    PendingCall *last = pending_append(b.engine, b.session, "two", 0);
    gate_fail_puts(&b.gate, TABLE_MESSAGE_EXTERNAL, error);
    gate_open(&b.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(first), ERROR_NONE);
    CHECK_EQ(pending_wait(failing), error);
    CHECK_EQ(pending_wait(memory), ERROR_NONE);
    CHECK_EQ(pending_wait(last), ERROR_NONE);

    WriterStats stats;
    engine_writer_stats(b.engine, &stats);
    CHECK_EQ(stats.batches_rerun, 1);
    CHECK_EQ(entry_count(&b), 3);
    CHECK_CLEAN(b.engine);
    gate_fail_puts(&b.gate, TABLE_MESSAGE_EXTERNAL, ERROR_NONE);
    CHECK_EQ(pending_wait(pending_external(&b)), ERROR_NONE);
    CHECK_EQ(entry_count(&b), 4);
    CHECK_CLEAN(b.engine);
    engine_close(b.engine);
}

TEST(one_call_of_a_batch_fails_after_its_first_put_with_an_io_error)
{
    one_fails_after_its_first_put(ERROR_IO);
}

TEST(one_call_of_a_batch_fails_after_its_first_put_with_a_full_store)
{
    one_fails_after_its_first_put(ERROR_STORE_FULL);
}

TEST(call_that_fails_before_its_first_put_leaves_its_batch_alone)
{
    Batching b;
    batching_open(&b);
    gate_close(&b.gate);
    PendingCall *holding = pending_append(b.engine, b.session, "holds the writer", 0);
    gate_wait_held(&b.gate);
    PendingCall *first = pending_append(b.engine, b.session, "one", 0);
    PendingCall *failing = pending_append(b.engine, "00000000000000000000000001", "nowhere", 0);
    PendingCall *last = pending_append(b.engine, b.session, "two", 0);
    gate_open(&b.gate);
    CHECK_EQ(pending_wait(holding), ERROR_NONE);
    CHECK_EQ(pending_wait(first), ERROR_NONE);
    CHECK_EQ(pending_wait(failing), ERROR_SESSION_NOT_FOUND);
    CHECK_EQ(pending_wait(last), ERROR_NONE);
    WriterStats stats;
    engine_writer_stats(b.engine, &stats);
    CHECK_EQ(stats.batches_rerun, 0);
    CHECK_EQ(entry_count(&b), 3);
    CHECK_CLEAN(b.engine);
    engine_close(b.engine);
}

// A disk that is full refuses thousands of writes a second: the log is not what fills the next one.
TEST(the_log_tells_a_few_of_many_refused_writes)
{
    Batching b;
    batching_open(&b);
    char path[600];
    snprintf(path, sizeof(path), "%s/report", test_dir());
    FILE *log = fopen(path, "w+e");
    CHECK(log != NULL);
    log_configure(LOG_ERROR, fileno(log));
    gate_fail_puts(&b.gate, TABLE_MESSAGE_EXTERNAL, ERROR_STORE_FULL);
    enum { REFUSED = 2000 };
    for (int i = 0; i < REFUSED; i++) {
        CHECK_EQ(pending_wait(pending_external(&b)), ERROR_STORE_FULL);
    }
    log_configure(LOG_OFF, STDERR_FILENO);
    engine_close(b.engine);

    char line[LOG_LINE_BYTES_MAX];
    int failed = 0;
    rewind(log);
    while (fgets(line, sizeof(line), log))
        failed += strstr(line, "msg=\"call failed\"") != NULL;
    fclose(log);
    CHECK(failed >= LOG_SAME_LINES_MAX && failed < REFUSED / 2);
}
