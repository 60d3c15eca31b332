// The scripted day. Each step builds its request anew from the ids of the steps before it, and
// keeps the ids it was given once it succeeds.

#include "day.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "day_ledger.h"

enum { LARGE_TEXT_BYTES = 200 * 1024, LONG_DATA_BYTES = 20000, EVENTS_KEPT = 30 };

static const int64_t START_MS = INT64_C(1700000000000);
static const int64_t NINE_DAYS_MS = INT64_C(9) * 24 * 3600 * 1000;

static int64_t day_clock(void *context)
{
    return ((Day *)context)->now_ms;
}

static int64_t day_boot_clock(void *context)
{
    return ((Day *)context)->now_ms - START_MS;
}

static void start(Day *day)
{
    ErrorDetail detail = {{0}};
    Error error = engine_open(&day->options, &detail, &day->engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
}

Day *day_open(Fault *fault)
{
    static char directories[8][512];
    static size_t opened;
    CHECK(opened < 8);
    char *directory = directories[opened];
    snprintf(directory, sizeof(directories[0]), "%s/day-%zu", test_dir(), opened++);
    Day *day = calloc(1, sizeof(Day));
    CHECK(day != NULL);
    day->now_ms = START_MS;
    day->options.store = (StoreOptions){
        .directory = directory,
        .is_ephemeral = true,
        .map_bytes = (size_t)1 << 28,
        .event_count_max = EVENTS_KEPT,
        .clock = {day_clock, day_boot_clock, day},
        .random_seed = 1,
    };
    if (fault) day->options.store.seam = fault_seam(fault);
    day->options.writes_on_thread = true; // the fault knows the writer by its thread
    start(day);
    return day;
}

void day_reopen(Day *day)
{
    engine_close(day->engine);
    start(day);
}

void day_close(Day *day)
{
    engine_close(day->engine);
    free(day);
}

static char *filled(size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

static Error create(Day *day, const char *parent, const char *slug, IdText out)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    External external = EXTERNAL__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    session.model = &model;
    session.project_dir = "/project";
    session.slug = (char *)(uintptr_t)slug;
    session.kind = parent ? SESSION_KIND_SUBAGENT : SESSION_KIND_PRIMARY;
    if (parent) session.parent_id = (char *)(uintptr_t)parent;
    char *data = NULL;
    if (*slug) {
        external.source = "hecate";
        external.id = (char *)(uintptr_t)slug;
        session.external = &external;
        data = filled(LONG_DATA_BYTES);
        data[0] = data[LONG_DATA_BYTES - 1] = '"';
        session.data_json = data;
    }
    request.session = &session;
    request.slug_policy = SLUG_POLICY_UNIQUE_SUFFIX;
    CreateSessionResponse *response;
    Error error = engine_call(day->engine, METHOD_CREATE_SESSION, &request, NULL, &response);
    if (!error) snprintf(out, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
    free(data);
    return error;
}

static Error create_root(Day *day)
{
    return create(day, NULL, "work", day->root);
}

static Error create_agent(Day *day)
{
    return create(day, day->root, "", day->agent);
}

static Error create_other(Day *day)
{
    return create(day, NULL, "", day->other);
}

static Error create_source(Day *day)
{
    return create(day, NULL, "source", day->source);
}

// What an append may have besides its text.
typedef struct Extras {
    const char *parent; // NULL: after the head
    const char *operation_id;
    MessageKind kind;
    bool has_tool; // a tool use, usage, an external id, propagated
    bool is_open;
} Extras;

static Error append(Day *day, const char *session, const char *text, Extras extras, IdText out)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Part part = PART__INIT, tool_part = PART__INIT, *parts[] = {&part, &tool_part};
    Text content = TEXT__INIT;
    ToolUse use = TOOL_USE__INIT;
    Usage usage = USAGE__INIT;
    External external = EXTERNAL__INIT;
    content.text = (char *)(uintptr_t)text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    use.id = "toolu_1";
    use.name = "read";
    tool_part.kind_case = PART__KIND_TOOL_USE;
    tool_part.tool_use = &use;
    usage.input_tokens = 100;
    usage.cost_nano_usd = 7;
    external.source = "pi";
    external.id = "entry-1";
    message.kind = extras.kind;
    message.role = extras.has_tool ? ROLE_ASSISTANT : ROLE_USER;
    message.parts = parts;
    message.n_parts = extras.has_tool ? 2 : 1;
    if (extras.has_tool) {
        message.usage = &usage;
        message.external = &external;
    }
    if (extras.is_open) message.status = MESSAGE_STATUS_OPEN;
    if (extras.kind == MESSAGE_KIND_SETTING) message.subtype = "thinking";
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    request.propagate_usage = extras.has_tool;
    if (extras.parent) {
        request.parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
        request.parent_id = (char *)(uintptr_t)extras.parent;
    }
    AppendMessageResponse *response;
    Error error =
        engine_call(day->engine, METHOD_APPEND_MESSAGE, &request, extras.operation_id, &response);
    if (!error && out) snprintf(out, sizeof(IdText), "%s", response->receipt->id);
    engine_free(response);
    return error;
}

static Error append_first(Day *day)
{
    return append(day, day->root, "hello", (Extras){.parent = NULL}, day->first);
}

static Error append_answer(Day *day)
{
    return append(day, day->root, "good day", (Extras){.operation_id = "op-1"}, day->answer);
}

static Error append_tool(Day *day)
{
    return append(day, day->root, "I look", (Extras){.has_tool = true, .operation_id = "op-2"},
                  day->tool);
}

static Error append_for_agent(Day *day)
{
    return append(day, day->agent, "look there", (Extras){.has_tool = true}, NULL);
}

static Error append_setting(Day *day)
{
    return append(day, day->root, "high", (Extras){.kind = MESSAGE_KIND_SETTING}, NULL);
}

static Error append_large(Day *day)
{
    char *text = filled(LARGE_TEXT_BYTES);
    Error error = append(day, day->root, text, (Extras){.parent = NULL}, day->large);
    free(text);
    return error;
}

static Error append_open(Day *day)
{
    return append(day, day->root, "", (Extras){.is_open = true}, day->open);
}

// Twice: a new part, then in its own place a larger one of another kind.
static Error put_part(Day *day, const char *operation_id, bool is_tool)
{
    Part part = PART__INIT;
    Text text = TEXT__INIT;
    ToolUse use = TOOL_USE__INIT;
    char *content = filled(LARGE_TEXT_BYTES);
    part.id = "part-1";
    part.kind_case = is_tool ? PART__KIND_TOOL_USE : PART__KIND_TEXT;
    if (is_tool) {
        use.id = "toolu_9";
        use.name = "read";
        use.input_case = TOOL_USE__INPUT_INPUT_TEXT;
        use.input_text = content;
        part.tool_use = &use;
    } else {
        text.text = "as it is written";
        part.text = &text;
    }
    AppendPartRequest request = APPEND_PART_REQUEST__INIT;
    request.message_id = day->open;
    request.part = &part;
    Error error = engine_call(day->engine, METHOD_APPEND_PART, &request, operation_id, NULL);
    free(content);
    return error;
}

static Error append_part(Day *day)
{
    return put_part(day, "op-part", /* is_tool= */ false);
}

static Error replace_part(Day *day)
{
    return put_part(day, "op-replace", /* is_tool= */ true);
}

static Error seal_open(Day *day)
{
    SealMessageRequest request = SEAL_MESSAGE_REQUEST__INIT;
    Usage usage = USAGE__INIT;
    usage.output_tokens = 9;
    request.message_id = day->open;
    request.usage = &usage;
    request.propagate_usage = true;
    return engine_call(day->engine, METHOD_SEAL_MESSAGE, &request, "op-seal", NULL);
}

static Error put_original(Day *day)
{
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    char *content = filled(LARGE_TEXT_BYTES);
    request.message_id = day->first;
    request.content = (ProtobufCBinaryData){LARGE_TEXT_BYTES, (uint8_t *)content};
    Error error = engine_call(day->engine, METHOD_PUT_ORIGINAL, &request, NULL, NULL);
    free(content);
    return error;
}

static Error append_branch(Day *day)
{
    return append(day, day->root, "beside", (Extras){.parent = day->first}, NULL);
}

static Error append_to_fork(Day *day)
{
    return append(day, day->fork, "another way", (Extras){.parent = NULL}, NULL);
}

static Error append_to_source(Day *day)
{
    char *text = filled(LARGE_TEXT_BYTES);
    Error error = append(day, day->source, text, (Extras){.has_tool = true}, day->source_message);
    free(text);
    return error;
}

static Error append_next_day(Day *day)
{
    return append(day, day->other, "good morning", (Extras){.operation_id = "op-3"}, NULL);
}

static Error add_marker(Day *day)
{
    AddCompactionMarkerRequest request = ADD_COMPACTION_MARKER_REQUEST__INIT;
    Marker marker = MARKER__INIT;
    marker.before_message_id = day->first;
    marker.summary = "what was before";
    request.session_id = day->root;
    request.marker = &marker;
    return engine_call(day->engine, METHOD_ADD_COMPACTION_MARKER, &request, "op-marker", NULL);
}

static Error fork_session(Day *day, const char *source, const char *before, IdText out)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)source;
    if (before) {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
        request.before_message_id = (char *)(uintptr_t)before;
    } else {
        request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
        request.at_head = true;
    }
    ForkSessionResponse *response;
    Error error = engine_call(day->engine, METHOD_FORK_SESSION, &request, NULL, &response);
    if (!error) snprintf(out, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
    return error;
}

static Error fork_root(Day *day)
{
    return fork_session(day, day->root, day->tool, day->fork);
}

static Error fork_source(Day *day)
{
    return fork_session(day, day->source, NULL, day->source_fork);
}

static Error rewind_root(Day *day)
{
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    request.session_id = day->root;
    request.message_id = day->answer;
    return engine_call(day->engine, METHOD_REWIND_SESSION, &request, "op-rewind", NULL);
}

static Error delete_tool(Day *day)
{
    DeleteMessageRequest request = DELETE_MESSAGE_REQUEST__INIT;
    request.message_id = day->tool;
    return engine_call(day->engine, METHOD_DELETE_MESSAGE, &request, NULL, NULL);
}

static Error purge_large(Day *day)
{
    PurgeMessageRequest request = PURGE_MESSAGE_REQUEST__INIT;
    request.message_id = day->large;
    return engine_call(day->engine, METHOD_PURGE_MESSAGE, &request, "op-purge", NULL);
}

static Error update_root(Day *day)
{
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    SessionField mask[] = {SESSION_FIELD_TITLE, SESSION_FIELD_DATA_JSON, SESSION_FIELD_ROLE_NAME};
    request.session_id = day->root;
    request.mask = mask;
    request.n_mask = 3;
    request.title = "a title";
    request.data_json = "{}";
    request.role_name = "coder";
    return engine_call(day->engine, METHOD_UPDATE_SESSION, &request, NULL, NULL);
}

static Error rename_root(Day *day)
{
    RenameSessionRequest request = RENAME_SESSION_REQUEST__INIT;
    request.session_id = day->root;
    request.slug = "source";
    request.slug_policy = SLUG_POLICY_UNIQUE_SUFFIX;
    return engine_call(day->engine, METHOD_RENAME_SESSION, &request, NULL, NULL);
}

static Error update_totals(Day *day)
{
    UpdateSessionTotalsRequest request = UPDATE_SESSION_TOTALS_REQUEST__INIT;
    Totals delta = TOTALS__INIT;
    delta.cost_nano_usd = 5;
    request.session_id = day->agent;
    request.delta = &delta;
    return engine_call(day->engine, METHOD_UPDATE_SESSION_TOTALS, &request, NULL, NULL);
}

static Error propagate_totals(Day *day)
{
    PropagateTotalsRequest request = PROPAGATE_TOTALS_REQUEST__INIT;
    Totals delta = TOTALS__INIT;
    delta.cost_nano_usd = 5;
    request.session_id = day->agent;
    request.delta = &delta;
    return engine_call(day->engine, METHOD_PROPAGATE_TOTALS, &request, "op-totals", NULL);
}

static Error soft_delete(Day *day)
{
    SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
    request.session_id = day->agent;
    return engine_call(day->engine, METHOD_SOFT_DELETE_SESSION, &request, NULL, NULL);
}

static Error restore(Day *day)
{
    RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
    request.session_id = day->agent;
    return engine_call(day->engine, METHOD_RESTORE_SESSION, &request, NULL, NULL);
}

static Error remember(Day *day)
{
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    NewMemory memory = NEW_MEMORY__INIT;
    memory.content = filled(2 * VALUE_BYTES_MAX);
    request.session_id = day->root;
    request.memory = &memory;
    RememberSessionMemoryResponse *response;
    Error error =
        engine_call(day->engine, METHOD_REMEMBER_SESSION_MEMORY, &request, NULL, &response);
    if (!error) snprintf(day->memory, sizeof(IdText), "%s", response->memory->id);
    engine_free(response);
    free(memory.content);
    return error;
}

static Error forget(Day *day)
{
    ForgetSessionMemoryRequest request = FORGET_SESSION_MEMORY_REQUEST__INIT;
    request.session_id = day->root;
    request.memory_id = day->memory;
    return engine_call(day->engine, METHOD_FORGET_SESSION_MEMORY, &request, NULL, NULL);
}

static Error replace_todos(Day *day)
{
    ReplaceSessionTodosRequest request = REPLACE_SESSION_TODOS_REQUEST__INIT;
    TodoItem item = TODO_ITEM__INIT, *items[] = {&item, &item};
    item.content = "write";
    item.status = "in_progress";
    request.session_id = day->root;
    request.items = items;
    request.n_items = 2;
    return engine_call(day->engine, METHOD_REPLACE_SESSION_TODOS, &request, "op-todos", NULL);
}

static Error publish(Day *day)
{
    PublishEventRequest request = PUBLISH_EVENT_REQUEST__INIT;
    request.session_id = day->source;
    request.type = "custom";
    return engine_call(day->engine, METHOD_PUBLISH_EVENT, &request, NULL, NULL);
}

static Error purge(Day *day, const char *session, bool keep_for_forks)
{
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.keep_for_forks = keep_for_forks;
    return engine_call(day->engine, METHOD_PURGE_SESSION, &request, NULL, NULL);
}

static Error purge_source(Day *day)
{
    return purge(day, day->source, /* keep_for_forks= */ true);
}

static Error purge_source_fork(Day *day)
{
    return purge(day, day->source_fork, /* keep_for_forks= */ false);
}

static Error purge_root(Day *day)
{
    return purge(day, day->root, /* keep_for_forks= */ true);
}

static Error sleep_nine_days(Day *day)
{
    day->now_ms += NINE_DAYS_MS;
    day_reopen(day); // with a fresh source of randomness, in every run of the day
    return create_other(day);
}

// Reads may fail as well, and must leave no trace either.
static Error read_all(Day *day)
{
    BuildContextRequest context = BUILD_CONTEXT_REQUEST__INIT;
    context.session_id = day->fork;
    Error error = engine_call(day->engine, METHOD_BUILD_CONTEXT, &context, NULL, NULL);
    if (error) return error;
    MessagesForSessionRequest history = MESSAGES_FOR_SESSION_REQUEST__INIT;
    history.session_id = day->root;
    error = engine_call(day->engine, METHOD_MESSAGES_FOR_SESSION, &history, NULL, NULL);
    if (error) return error;
    ListSessionsRequest list = LIST_SESSIONS_REQUEST__INIT;
    list.order = SESSION_ORDER_LAST_ACTIVE;
    error = engine_call(day->engine, METHOD_LIST_SESSIONS, &list, NULL, NULL);
    if (error) return error;
    ListEventsRequest events = LIST_EVENTS_REQUEST__INIT;
    return engine_call(day->engine, METHOD_LIST_EVENTS, &events, NULL, NULL);
}

const DayStep DAY_STEPS[] = {
    {"create_root", create_root, STEP_WRITE},
    {"create_agent", create_agent, STEP_WRITE},
    {"append_first", append_first, STEP_WRITE},
    {"append_answer", append_answer, STEP_WRITE},
    {"append_answer again", append_answer, STEP_WRITE},
    {"append_tool", append_tool, STEP_WRITE},
    {"append_for_agent", append_for_agent, STEP_WRITE},
    {"add_marker", add_marker, STEP_WRITE},
    {"append_setting", append_setting, STEP_WRITE},
    {"append_large", append_large, STEP_WRITE},
    {"append_open", append_open, STEP_WRITE},
    {"append_part", append_part, STEP_WRITE},
    {"replace_part", replace_part, STEP_WRITE},
    {"seal_open", seal_open, STEP_WRITE},
    {"put_original", put_original, STEP_WRITE},
    {"fork_root", fork_root, STEP_WRITE},
    {"append_to_fork", append_to_fork, STEP_WRITE},
    {"read_all", read_all, STEP_READ},
    {"create_source", create_source, STEP_WRITE},
    {"append_to_source", append_to_source, STEP_WRITE},
    {"append_branch", append_branch, STEP_WRITE},
    {"rewind_root", rewind_root, STEP_WRITE},
    {"delete_tool", delete_tool, STEP_WRITE},
    {"purge_large", purge_large, STEP_WRITE},
    {"update_root", update_root, STEP_WRITE},
    {"rename_root", rename_root, STEP_WRITE},
    {"update_totals", update_totals, STEP_WRITE},
    {"propagate_totals", propagate_totals, STEP_WRITE},
    {"soft_delete", soft_delete, STEP_WRITE},
    {"restore", restore, STEP_WRITE},
    {"remember", remember, STEP_WRITE},
    {"forget", forget, STEP_WRITE},
    {"replace_todos", replace_todos, STEP_WRITE},
    {"publish", publish, STEP_WRITE},
    {"record_call", day_record_call, STEP_WRITE},
    {"exchange", day_exchange, STEP_WRITE},
    {"read_ledger", day_read_ledger, STEP_READ},
    {"delete_call", day_delete_call, STEP_WRITE},
    {"fork_source", fork_source, STEP_WRITE},
    {"purge_source", purge_source, STEP_PURGE},
    {"sleep_nine_days", sleep_nine_days, STEP_QUIET},
    {"append_next_day", append_next_day, STEP_WRITE},
    {"purge_source_fork", purge_source_fork, STEP_PURGE},
    {"purge_root", purge_root, STEP_PURGE},
};

const size_t DAY_STEP_COUNT = sizeof(DAY_STEPS) / sizeof(*DAY_STEPS);

Error day_nudge(Day *day)
{
    RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
    request.session_id = "00000000000000000000000001";
    return engine_call(day->engine, METHOD_RESTORE_SESSION, &request, NULL, NULL);
}

Error day_purges_pending(Day *day, uint64_t *out)
{
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *response;
    Error error = engine_call(day->engine, METHOD_STATS, &request, NULL, &response);
    if (!error) *out = response->purges_pending;
    engine_free(response);
    return error;
}
