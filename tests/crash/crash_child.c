// The process that is killed.

#include "crash_child.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/random.h"

enum { LARGE_TEXT_BYTES = 1024 * 1024, BULK_PURGE_AT = 5 };

typedef struct Writing {
    CrashShared *shared;
    Engine *engine;
    size_t thread;
} Writing;

static Error seam_before(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    CrashShared *shared = context;
    if (operation == KV_PUT || operation == KV_DELETE) {
        atomic_fetch_add(&shared->puts, 1);
        if (atomic_exchange(&shared->phase, CRASH_PUTTING) != CRASH_PUTTING) {
            atomic_fetch_add(&shared->batches, 1);
        }
    } else if (operation == KV_COMMIT) {
        atomic_store(&shared->phase, CRASH_COMMITTING);
    } else if (operation == KV_COMMITTED) {
        atomic_store(&shared->phase, CRASH_IDLE);
        atomic_store(&shared->puts, 0);
    }
    return ERROR_NONE;
}

static Error call_append(Engine *engine, CrashRecord *record)
{
    bool is_large = record->op == CRASH_APPEND_LARGE;
    size_t size = is_large ? LARGE_TEXT_BYTES : 32;
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memset(text, is_large ? 'x' : ' ', size);
    text[size] = '\0';
    int used = snprintf(text, 32, "m%u", record->number);
    text[used] = ' ';
    if (!is_large) text[used] = '\0';

    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Usage usage = USAGE__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    Text content = TEXT__INIT;
    content.text = text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    usage.cost_nano_usd = record->number;
    message.role = record->number % 2 ? ROLE_USER : ROLE_ASSISTANT;
    message.usage = &usage;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = record->session;
    request.message = &message;
    request.propagate_usage = crash_propagates(record->number);
    AppendMessageResponse *response;
    Error error =
        engine_call(engine, METHOD_APPEND_MESSAGE, &request, record->operation_id, &response);
    if (!error) snprintf(record->result, sizeof(IdText), "%s", response->receipt->id);
    engine_free(response);
    free(text);
    return error;
}

static Error call_create(Engine *engine, CrashRecord *record)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    session.model = &model;
    session.project_dir = "/project";
    session.kind = SESSION_KIND_SUBAGENT;
    session.parent_id = record->session;
    request.session = &session;
    CreateSessionResponse *response;
    Error error =
        engine_call(engine, METHOD_CREATE_SESSION, &request, record->operation_id, &response);
    if (!error) snprintf(record->result, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
    return error;
}

static Error call_fork(Engine *engine, CrashRecord *record)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    request.session_id = record->session;
    request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request.at_head = true;
    ForkSessionResponse *response;
    Error error =
        engine_call(engine, METHOD_FORK_SESSION, &request, record->operation_id, &response);
    if (!error) snprintf(record->result, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
    return error;
}

static Error call_propagate(Engine *engine, CrashRecord *record)
{
    PropagateTotalsRequest request = PROPAGATE_TOTALS_REQUEST__INIT;
    Totals delta = TOTALS__INIT;
    delta.cost_nano_usd = record->number;
    request.session_id = record->session;
    request.delta = &delta;
    return engine_call(engine, METHOD_PROPAGATE_TOTALS, &request, record->operation_id, NULL);
}

static Error call_remember(Engine *engine, CrashRecord *record)
{
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    NewMemory memory = NEW_MEMORY__INIT;
    memory.content = record->operation_id;
    request.session_id = record->session;
    request.memory = &memory;
    return engine_call(engine, METHOD_REMEMBER_SESSION_MEMORY, &request, record->operation_id,
                       NULL);
}

static Error call_delete(Engine *engine, CrashRecord *record)
{
    DeleteMessageRequest request = DELETE_MESSAGE_REQUEST__INIT;
    request.message_id = record->target;
    return engine_call(engine, METHOD_DELETE_MESSAGE, &request, record->operation_id, NULL);
}

static Error call_purge(Engine *engine, CrashRecord *record)
{
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = record->session;
    request.keep_for_forks = true;
    return engine_call(engine, METHOD_PURGE_SESSION, &request, record->operation_id, NULL);
}

Error crash_call(Engine *engine, CrashRecord *record)
{
    switch (record->op) {
    case CRASH_APPEND:
    case CRASH_APPEND_LARGE: return call_append(engine, record);
    case CRASH_CREATE: return call_create(engine, record);
    case CRASH_FORK: return call_fork(engine, record);
    case CRASH_PROPAGATE: return call_propagate(engine, record);
    case CRASH_REMEMBER: return call_remember(engine, record);
    case CRASH_DELETE: return call_delete(engine, record);
    case CRASH_PURGE: return call_purge(engine, record);
    }
    return ERROR_INVALID_ARGUMENT;
}

static CrashOp choose_op(Random *random, const CrashThread *log, bool has_target)
{
    bool has_room = log->session_count < CRASH_SESSIONS_MAX;
    switch (random_below(random, 32)) {
    case 0: return CRASH_APPEND_LARGE;
    case 1:
    case 2: return has_room ? CRASH_CREATE : CRASH_APPEND;
    case 3:
    case 4: return has_room ? CRASH_FORK : CRASH_APPEND;
    case 5:
    case 6:
    case 7:
    case 8: return CRASH_PROPAGATE;
    case 9:
    case 10: return CRASH_REMEMBER;
    case 11:
    case 12:
    case 13: return has_target ? CRASH_DELETE : CRASH_APPEND;
    case 14:
    case 15: return log->session_count > 1 ? CRASH_PURGE : CRASH_APPEND;
    default: return CRASH_APPEND;
    }
}

// Fills the next record. `last` is the last message appended to the session that `last_session`
// names.
static void choose(const Writing *writing, Random *random, unsigned index, const CrashRecord *last,
                   CrashRecord *record)
{
    CrashThread *log = &writing->shared->threads[writing->thread];
    bool has_target = last && (last->op == CRASH_APPEND || last->op == CRASH_APPEND_LARGE);
    *record = (CrashRecord){.number = index + 1};
    snprintf(record->operation_id, sizeof(record->operation_id), "c%u-t%zu-%u",
             writing->shared->cycle, writing->thread, index);
    record->op = choose_op(random, log, has_target);
    size_t session = random_below(random, log->session_count);
    if (record->op == CRASH_PURGE && session == 0) session = log->session_count - 1;
    memcpy(record->session, log->sessions[session], sizeof(IdText));
    if (record->op == CRASH_DELETE) memcpy(record->target, last->result, sizeof(IdText));
    if (index == BULK_PURGE_AT && *log->bulk) {
        record->op = CRASH_PURGE;
        memcpy(record->session, log->bulk, sizeof(IdText));
    }
}

// Keeps the thread's list of sessions.
static void settle(CrashThread *log, const CrashRecord *record)
{
    if (record->op == CRASH_CREATE || record->op == CRASH_FORK) {
        memcpy(log->sessions[log->session_count++], record->result, sizeof(IdText));
    }
    for (size_t i = 1; record->op == CRASH_PURGE && i < log->session_count; i++) {
        if (strcmp(log->sessions[i], record->session) != 0) continue;
        memcpy(log->sessions[i], log->sessions[--log->session_count], sizeof(IdText));
        return;
    }
}

static void *write_on(void *context)
{
    Writing *writing = context;
    CrashThread *log = &writing->shared->threads[writing->thread];
    Random random;
    random_seed(&random, writing->shared->seed + writing->thread + 1);
    CrashRecord *last = NULL;
    for (unsigned i = 0; i < CRASH_RECORDS_MAX; i++) {
        CrashRecord *record = &log->records[i];
        choose(writing, &random, i, last, record);
        atomic_store(&log->begun, i + 1);
        if (crash_call(writing->engine, record) != ERROR_NONE) {
            atomic_store(&writing->shared->is_failed, 1);
            return NULL;
        }
        atomic_store(&log->acknowledged, i + 1);
        settle(log, record);
        last = record;
    }
    return NULL;
}

void crash_child_run(CrashShared *shared, const char *directory)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    EngineOptions options = {.store = {
                                 .directory = directory,
                                 .map_bytes = (size_t)4 << 30,
                                 .seam = {seam_before, shared},
                             }};
    ErrorDetail detail = {{0}};
    Engine *engine;
    Error error = engine_open(&options, &detail, &engine);
    if (error) {
        printf("the child cannot open the store: %s\n", detail.text);
        _exit(EXIT_FAILURE);
    }
    pthread_t threads[CRASH_THREADS];
    Writing writings[CRASH_THREADS];
    for (size_t i = 0; i < CRASH_THREADS; i++) {
        writings[i] = (Writing){shared, engine, i};
        if (pthread_create(&threads[i], NULL, write_on, &writings[i]) != 0) _exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < CRASH_THREADS; i++)
        pthread_join(threads[i], NULL);
    fflush(NULL);
    _exit(EXIT_FAILURE); // it was to be killed
}
