// A run's engine, its calls, and what it has seen of them.

#include "run.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "channel_local.h"
#include "client.h"
#include "content.h"

typedef struct MethodRow {
    const char *name, *path;
    const ProtobufCMessageDescriptor *response;
    bool is_write;
} MethodRow;

static const MethodRow ROWS[RUN_METHOD_COUNT] = {
#define X(constant, name, Name, is_write)                                                          \
    {#Name, "/tine.v1.StoreService/" #Name, &tine__v1__##name##_response__descriptor, is_write},
    RUN_METHODS(X)
#undef X
};

static const char *const REASONS[] = {
#define X(name) #name,
    RUN_REASONS(X)
#undef X
};
_Static_assert(sizeof(REASONS) / sizeof(*REASONS) == REASON_COUNT_MAX, "one count for each");

enum { SCRATCH_BYTES_MAX = 256 << 20, SETTLE_TRIES_MAX = 10000000 };

static int64_t run_clock(void *context)
{
    return __atomic_load_n(&((Run *)context)->now_ms, __ATOMIC_RELAXED);
}

static int64_t run_boot_clock(void *context)
{
    return __atomic_load_n(&((Run *)context)->boot_ms, __ATOMIC_RELAXED);
}

static void engine_start(Run *run)
{
    ErrorDetail detail = {{0}};
    Error error = engine_open(&run->engine_options, &detail, &run->engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    Channel *channel;
    CHECK_EQ(channel_local_borrow(run->engine, &channel), STATUS_OK);
    CHECK_EQ(tine_from_channel(channel, &run->tine), STATUS_OK);
}

static void engine_stop(Run *run)
{
    tine_close(run->tine);
    engine_close(run->engine);
}

void run_open(Run *run, const RunOptions *options)
{
    static unsigned count; // each run has a directory of its own
    *run = (Run){.options = *options, .now_ms = INT64_C(1700000000000), .doing = "open"};
    run->latest_ms = run->now_ms;
    run->event_count_max = 2000 + options->seed % 1000;
    random_seed(&run->random, options->seed);
    snprintf(run->directory, sizeof(run->directory), "%s/%u", test_dir(), count++);
    arena_init(&run->scratch, SCRATCH_BYTES_MAX);
    run->engine_options.store = (StoreOptions){
        .directory = run->directory,
        .is_ephemeral = true,
        .map_bytes = (size_t)4 << 30,
        .fork_depth_max = 3,
        .event_count_max = run->event_count_max,
        .event_age_ms_max = INT64_MAX / 4,
        .operation_count_max = REPLAY_COUNT,
        .clock = {run_clock, run_boot_clock, run},
        .random_seed = options->seed + 1,
    };
    engine_start(run);
}

void run_reopen(Run *run)
{
    static const uint32_t DEPTHS[] = {0, 0, 0, 1, 3};
    static const char *const BOOTS[] = {"one", "two"};
    run->engine_options.store.fork_depth_max = DEPTHS[run_below(run, 5)];
    engine_stop(run);
    if (run_chance(run, 50)) { // the machine was reset in between
        run->engine_options.store.boot_id = BOOTS[run->reopenings % 2];
        run->aged_ms += RESET_STEP_MS_MAX;
    }
    engine_start(run);
    run->reopenings++;
}

static void replay_free(Replay *replay)
{
    protobuf_c_message_free_unpacked(replay->request, NULL);
    protobuf_c_message_free_unpacked(replay->response, NULL);
}

void run_close(Run *run)
{
    engine_stop(run);
    run_forget(run);
    model_free(&run->model);
    for (size_t i = 0; i < REPLAY_COUNT; i++)
        replay_free(&run->replays[i]);
    for (size_t i = 0; i < run->event_count; i++)
        free(run->events[i].totals);
    free(run->events);
    free(run->responses);
    free(run->pages.entries);
    arena_free(&run->scratch);
}

void run_differs(Run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("The store and the model differ at step %llu of seed %llu, in %s:\n  ",
           (unsigned long long)run->step, (unsigned long long)run->options.seed, run->doing);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nThe last writes:\n");
    for (size_t i = run->report_count; i < run->report_count + REPORT_LINES; i++) {
        const char *line = run->report[i % REPORT_LINES];
        if (*line) printf("  %s\n", line);
    }
    if (run->options.ends_on_difference) {
        fflush(NULL);
        _exit(RUN_DIFFERS);
    }
    CHECK(!"the store and the model agree");
    abort();
}

void *run_alloc(Run *run, size_t size)
{
    void *memory = arena_zalloc(&run->scratch, size ? size : 1);
    CHECK(memory);
    return memory;
}

char *run_text(Run *run, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof(text));
    char *copy = run_alloc(run, (size_t)size + 1);
    memcpy(copy, text, (size_t)size);
    return copy;
}

void run_forget(Run *run)
{
    for (size_t i = 0; i < run->response_count; i++) {
        protobuf_c_message_free_unpacked(run->responses[i], NULL);
    }
    run->response_count = 0;
    arena_reset(&run->scratch, SCRATCH_BYTES_MAX);
}

static void count_reason(Run *run, const char *reason)
{
    for (size_t i = 0; i < REASON_COUNT_MAX; i++) {
        if (strcmp(REASONS[i], reason) == 0) run->reason_counts[i]++;
    }
}

static ProtobufCMessage *copy_of(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes);
    protobuf_c_message_pack(message, bytes);
    ProtobufCMessage *copy = protobuf_c_message_unpack(message->descriptor, NULL, size, bytes);
    CHECK(copy);
    free(bytes);
    return copy;
}

static void replay_note(Run *run, RunMethod method, const ProtobufCMessage *request,
                        const ProtobufCMessage *response)
{
    Replay *replay = &run->replays[run->replay_count++ % REPLAY_COUNT];
    replay_free(replay);
    *replay = (Replay){.method = method,
                       .request = copy_of(request),
                       .response = copy_of(response),
                       .sent_at = run->aged_ms};
    memcpy(replay->operation_id, run->operation_id, sizeof(replay->operation_id));
}

// Sends one call; its outcome must be this one.
static ProtobufCMessage *send(Run *run, RunMethod method, const ProtobufCMessage *request,
                              const char *operation_id, const char *reason)
{
    const MethodRow *row = &ROWS[method];
    TineStatus status = {.code = 0};
    TineCallOptions options = {.operation_id = operation_id, .out_status = &status};
    ProtobufCMessage *response = NULL;
    int code = tine_call(run->tine, &options, row->path, request, row->response, &response);
    run->method_counts[method]++;
    if (code) {
        count_reason(run, status.reason);
    } else {
        run->method_successes[method]++;
    }
    if (row->is_write) {
        char *line = run->report[run->report_count++ % REPORT_LINES];
        snprintf(line, sizeof(run->report[0]), "%llu %s (%s)%s%s: '%s'",
                 (unsigned long long)run->step, row->name, run->doing, operation_id ? " as " : "",
                 operation_id ? operation_id : "", status.reason);
    }
    if ((code != 0) != (*reason != '\0') || strcmp(code ? status.reason : "", reason) != 0) {
        run_differs(run, "%s ended with '%s' (%s), not with '%s'", row->name, status.reason,
                    status.message, reason);
    }
    if (!response) return NULL;
    if (run->response_count == run->response_capacity) {
        run->response_capacity = run->response_capacity ? 2 * run->response_capacity : 64;
        run->responses =
            realloc(run->responses, run->response_capacity * sizeof(ProtobufCMessage *));
        CHECK(run->responses);
    }
    run->responses[run->response_count++] = response;
    return response;
}

ProtobufCMessage *run_call(Run *run, RunMethod method, ProtobufCMessage *request,
                           const char *reason)
{
    run->operation_id[0] = '\0';
    if (!ROWS[method].is_write || run_below(run, 8) != 0) {
        return send(run, method, request, NULL, reason);
    }
    if (*run->failed_operation_id) {
        memcpy(run->operation_id, run->failed_operation_id, sizeof(run->operation_id));
    } else {
        snprintf(run->operation_id, sizeof(run->operation_id), "op-%u", run->next_number++);
    }
    ProtobufCMessage *response = send(run, method, request, run->operation_id, reason);
    memcpy(run->failed_operation_id, run->operation_id, sizeof(run->operation_id));
    if (!response) return NULL;
    run->failed_operation_id[0] = '\0';
    replay_note(run, method, request, response);
    return response;
}

static Replay *replay_pick(Run *run)
{
    static const int64_t KEPT_MS = INT64_C(24) * 3600 * 1000;
    size_t count = run->replay_count < REPLAY_COUNT ? run->replay_count : REPLAY_COUNT;
    if (count == 0) return NULL;
    Replay *replay = &run->replays[run_below(run, count)];
    return run->aged_ms - replay->sent_at <= KEPT_MS ? replay : NULL;
}

// The record in the first field of a response, if it is one that replays return as it is by now.
static ProtobufCMessage *record_of(ProtobufCMessage *response)
{
    const ProtobufCFieldDescriptor *field = &response->descriptor->fields[0];
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_REPEATED ||
        field->descriptor == &receipt__descriptor ||
        field->descriptor == &call_receipt__descriptor) {
        return NULL;
    }
    return *(ProtobufCMessage **)(void *)((uint8_t *)response + field->offset);
}

// A record that is gone is told by its ids alone.
static void replay_compare_memory(Run *run, const Memory *actual, const Memory *first)
{
    Memory bare = MEMORY__INIT;
    const Memory *expected = &bare;
    bare.id = first->id;
    bare.session_id = first->session_id;
    ModelSession *session = model_session(&run->model, first->session_id);
    for (size_t i = 0; session && i < session->memory_count; i++) {
        if (strcmp(session->memories[i]->id, first->id) == 0) expected = session->memories[i];
    }
    // The memories of a purged session go in the background.
    if (session || !*actual->content) {
        run_compare(run, "replayed memory", &actual->base, &expected->base);
    }
}

// An entry of a purged session is still there if it became a tombstone.
static void replay_compare_entry(Run *run, const Message *actual, const Message *first)
{
    RUN_CHECK(run, strcmp(actual->id, first->id) == 0);
    for (size_t i = 0; i < run->model.count; i++) {
        ModelSession *session = run->model.sessions[i];
        if (strcmp(session->id, first->session_id) != 0) continue;
        RUN_CHECK(run, first->sequence < session->entry_count);
        content_check(run, actual, session->entries[first->sequence]);
    }
}

static void replay_compare_record(Run *run, ProtobufCMessage *actual, ProtobufCMessage *first)
{
    if (actual->descriptor == &session__descriptor) {
        const char *id = ((Session *)first)->id;
        ModelSession *session = model_session(&run->model, id);
        Session bare = SESSION__INIT;
        bare.id = text_of(id);
        if (session) {
            run_compare_session(run, (Session *)actual, session, /* is_brief= */ true);
        } else {
            run_compare(run, "replay of a purged session", actual, &bare.base);
        }
    } else if (actual->descriptor == &todos__descriptor) {
        const char *id = ((Todos *)first)->session_id;
        ModelSession *session = model_session(&run->model, id);
        Todos bare = TODOS__INIT;
        bare.session_id = text_of(id);
        run_compare(run, "replayed todos", actual, session ? &session->todos->base : &bare.base);
    } else if (actual->descriptor == &memory__descriptor) {
        replay_compare_memory(run, (Memory *)actual, (Memory *)first);
    } else {
        RUN_CHECK(run, actual->descriptor == &message__descriptor);
        replay_compare_entry(run, (Message *)actual, (Message *)first);
    }
}

void run_replay(Run *run)
{
    Replay *replay = replay_pick(run);
    if (!replay) return;
    ProtobufCMessage *response =
        send(run, replay->method, replay->request, replay->operation_id, "");
    ProtobufCMessage *record = record_of(response);
    if (record) {
        replay_compare_record(run, record, record_of(replay->response));
    } else {
        run_compare(run, "replay", response, replay->response);
    }
}

void run_reuse_operation(Run *run)
{
    Replay *replay = replay_pick(run);
    if (!replay) return;
    PublishEventRequest request = PUBLISH_EVENT_REQUEST__INIT;
    request.type = run_text(run, "reused.%u", run->next_number++);
    send(run, RUN_PUBLISH_EVENT, &request.base, replay->operation_id, "OPERATION_ID_REUSED");
}

void run_settle(Run *run)
{
    for (int i = 0; run->is_purging; i++) {
        StatsRequest request = STATS_REQUEST__INIT;
        StatsResponse *response = RUN_CALL(run, STATS, Stats, &request, "");
        run->is_purging = response->purges_pending > 0;
        if (i >= SETTLE_TRIES_MAX) run_differs(run, "a purge does not end");
        if (run->is_purging) sched_yield();
    }
    run->is_releasing = false;
}

void run_new_id(Run *run, const char *id)
{
    Ulid old = ULID_ZERO, new;
    if (*run->last_id) CHECK(ulid_parse(slice_of(run->last_id), &old));
    if (!ulid_parse(slice_of(id), &new)) run_differs(run, "'%s' is not an id", id);
    if (strcmp(id, run->last_id) <= 0) {
        run_differs(run, "id %s is not after %s", id, run->last_id);
    }
    // Ids are issued for origins too, which no reply shows.
    int64_t time_ms = ulid_time_ms(new);
    bool is_early = time_ms < ulid_time_ms(old) || time_ms < run->now_ms;
    if (is_early || time_ms > run->latest_ms) {
        run_differs(run, "id %s is of %lld ms, now is %lld", id, (long long)time_ms,
                    (long long)run->now_ms);
    }
    memcpy(run->last_id, id, ULID_TEXT_BYTES);
}

ExpectedEvent *run_event(Run *run, ModelSession *head, const char *session_id, const char *type)
{
    if (run->event_count == run->event_capacity) {
        run->event_capacity = run->event_capacity ? 2 * run->event_capacity : 1024;
        run->events = realloc(run->events, run->event_capacity * sizeof(ExpectedEvent));
        CHECK(run->events);
    }
    ExpectedEvent *event = &run->events[run->event_count++];
    *event = (ExpectedEvent){
        .sequence = ++run->last_event_sequence,
        .type = type,
        .data_json = "",
        .created_at = run->now_ms,
    };
    memcpy(event->session_id, session_id, strlen(session_id) + 1);
    memcpy(event->operation_id, run->operation_id, sizeof(event->operation_id));
    if (head) {
        event->previous = head->last_event_sequence;
        head->last_event_sequence = event->sequence;
        head->is_touched = true;
    }
    return event;
}

void run_report(Run *run, bool is_complete)
{
    printf("seed %llu: %llu operations, %llu comparisons, reopened %llu times, %zu sessions\n",
           (unsigned long long)run->options.seed, (unsigned long long)run->step,
           (unsigned long long)run->comparisons, (unsigned long long)run->reopenings,
           run->model.count);
    size_t entries = 0, log = 0, history = 0, owners = 0, tombstones = 0;
    for (size_t i = 0; i < run->model.count; i++) {
        const ModelSession *session = run->model.sessions[i];
        size_t count, distinct = model_history_owners(&run->model, session->head);
        model_history(&run->model, session->head, &count);
        entries += session->entry_count;
        if (session->entry_count > log) log = session->entry_count;
        if (count > history) history = count;
        if (distinct > owners) owners = distinct;
        tombstones += session->is_tombstone;
    }
    printf(
        "at the end %zu entries, the longest log %zu, the longest history %zu, of %zu sessions at "
        "most; %zu tombstones\n",
        entries, log, history, owners, tombstones);
    for (size_t i = 0; i < RUN_METHOD_COUNT; i++) {
        printf("%10llu ok %8llu failed  %s\n", (unsigned long long)run->method_successes[i],
               (unsigned long long)(run->method_counts[i] - run->method_successes[i]),
               ROWS[i].name);
    }
    for (size_t i = 0; i < REASON_COUNT_MAX; i++) {
        printf("%10llu %s\n", (unsigned long long)run->reason_counts[i], REASONS[i]);
    }
    fflush(stdout);
    for (size_t i = 0; is_complete && i < RUN_METHOD_COUNT; i++) {
        if (run->method_successes[i] == 0) run_differs(run, "%s never succeeded", ROWS[i].name);
    }
    for (size_t i = 0; is_complete && i < REASON_COUNT_MAX; i++) {
        if (run->reason_counts[i] == 0) run_differs(run, "%s never occurred", REASONS[i]);
    }
}
