// Operations on memories, todos and events, on the clock and on the store as a whole; and reads
// that must fail.

#include <stdlib.h>

#include "operate.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static void memory_event(Run *run, ModelSession *session, const char *type, const char *id)
{
    ExpectedEvent *event = run_event(run, session, session->id, type);
    snprintf(event->record_id, sizeof(event->record_id), "%s", id);
}

static Memory *memory_copy(const Memory *memory)
{
    size_t size = tine__v1__memory__get_packed_size(memory);
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes);
    tine__v1__memory__pack(memory, bytes);
    Memory *copy = tine__v1__memory__unpack(NULL, size, bytes);
    CHECK(copy);
    free(bytes);
    return copy;
}

void operate_remember(Run *run)
{
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    NewMemory wanted = NEW_MEMORY__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    request.memory = &wanted;
    unsigned number = run->next_number++;
    wanted.content =
        run_text(run, "%sfact %u%s", number % 3 ? "" : " \n\t", number, number % 2 ? "" : "  ");
    const char *trimmed = run_text(run, "fact %u", number);
    wanted.title = text_of(run_chance(run, 30) ? "title" : "");
    wanted.body = run_chance(run, 30) ? content_text(run) : wanted.body;
    wanted.scope = run_chance(run, 30) ? MEMORY_SCOPE_SESSION : MEMORY_SCOPE_UNSPECIFIED;
    const char *reason = pick_refusal(&pick);
    if (run_below(run, 30) == 0) {
        if (run_chance(run, 50))
            wanted.content = text_of(" \n ");
        else
            wanted.scope = MEMORY_SCOPE_GLOBAL;
        reason = "INVALID_ARGUMENT";
    }
    RememberSessionMemoryResponse *response =
        RUN_CALL(run, REMEMBER_SESSION_MEMORY, RememberSessionMemory, &request, reason);
    if (!response) return;
    ModelSession *session = pick.session;
    run_new_id(run, response->memory->id);
    Memory expected = MEMORY__INIT;
    expected.id = response->memory->id;
    expected.session_id = session->id;
    expected.scope = MEMORY_SCOPE_SESSION;
    expected.title = wanted.title;
    expected.body = wanted.body;
    expected.content = text_of(trimmed);
    expected.created_at = expected.updated_at = run->now_ms;
    run_compare(run, "memory", &response->memory->base, &expected.base);
    session->memories = realloc(session->memories, (session->memory_count + 1) * sizeof(Memory *));
    CHECK(session->memories);
    session->memories[session->memory_count++] = memory_copy(&expected);
    memory_event(run, session, "memory.remembered", expected.id);
}

void operate_forget(Run *run)
{
    ForgetSessionMemoryRequest request = FORGET_SESSION_MEMORY_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    Memory *memory = NULL;
    ModelSession *owner = run_chance(run, 90) ? pick.session : pick_live(run);
    if (owner && owner->memory_count) {
        memory = owner->memories[run_below(run, owner->memory_count)];
    }
    request.memory_id = memory ? memory->id : text_of("01HF7YAT000000000000000000");
    const char *reason = pick_refusal(&pick);
    bool is_there = memory && owner == pick.session && !memory->deleted_at;
    if (!*reason && !is_there) reason = "MEMORY_NOT_FOUND";
    ForgetSessionMemoryResponse *response =
        RUN_CALL(run, FORGET_SESSION_MEMORY, ForgetSessionMemory, &request, reason);
    if (!response) return;
    memory->deleted_at = memory->updated_at = run->now_ms;
    run_compare(run, "forgotten memory", &response->memory->base, &memory->base);
    memory_event(run, pick.session, "memory.forgotten", memory->id);
}

void operate_replace_todos(Run *run)
{
    static const char *const STATUSES[] = {"pending", "in_progress", "completed", "cancelled", "?"};
    ReplaceSessionTodosRequest request = REPLACE_SESSION_TODOS_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    Todos expected = TODOS__INIT;
    TodoSummary summary = TODO_SUMMARY__INIT;
    size_t count = run_below(run, 6);
    request.items = run_alloc(run, count * sizeof(TodoItem *));
    request.n_items = count;
    for (size_t i = 0; i < count; i++) {
        TodoItem *item = request.items[i] = RUN_NEW(run, TodoItem);
        tine__v1__todo_item__init(item);
        item->content = run_text(run, "task %zu", i);
        uint64_t status = run_below(run, LENGTH(STATUSES));
        item->status = text_of(STATUSES[status]);
        summary.in_progress += status == 1;
        summary.completed += status == 2;
        summary.cancelled += status == 3;
    }
    summary.total = count;
    summary.incomplete = count - summary.completed - summary.cancelled;
    ReplaceSessionTodosResponse *response =
        RUN_CALL(run, REPLACE_SESSION_TODOS, ReplaceSessionTodos, &request, pick_refusal(&pick));
    if (!response) return;
    expected.session_id = text_of(pick.id);
    expected.items = request.items;
    expected.n_items = count;
    expected.summary = &summary;
    expected.updated_at = run->now_ms;
    run_compare(run, "todos", &response->todos->base, &expected.base);
    size_t size = tine__v1__todos__get_packed_size(&expected);
    uint8_t *bytes = run_alloc(run, size);
    tine__v1__todos__pack(&expected, bytes);
    tine__v1__todos__free_unpacked(pick.session->todos, NULL);
    pick.session->todos = tine__v1__todos__unpack(NULL, size, bytes);
    run_event(run, pick.session, pick.id, "todos.replaced");
}

void operate_publish_event(Run *run)
{
    static const char *const TYPES[] = {"agent.note", "tool.started", "x"};
    PublishEventRequest request = PUBLISH_EVENT_REQUEST__INIT;
    SessionPick pick = {.id = "", .reason = ""};
    if (run_chance(run, 80)) pick = pick_session(run);
    bool is_global = *pick.id == '\0';
    request.session_id = text_of(pick.id);
    const char *type = TYPES[run_below(run, LENGTH(TYPES))];
    request.type = text_of(type);
    request.role = (Role)run_below(run, 4);
    const char *data = run_chance(run, 50) ? "{\"delta\":1}" : "";
    request.data_json = text_of(data);
    const char *reason = is_global ? "" : pick_refusal(&pick);
    if (run_below(run, 30) == 0) {
        request.type = text_of(run_chance(run, 50) ? "session.created" : "a/b");
        reason = "INVALID_ARGUMENT";
    }
    PublishEventResponse *response = RUN_CALL(run, PUBLISH_EVENT, PublishEvent, &request, reason);
    if (!response) return;
    ExpectedEvent *event = run_event(run, pick.session, pick.id, type);
    event->role = request.role;
    event->data_json = data;
    RUN_CHECK(run, response->sequence == event->sequence);
    RUN_CHECK(run, response->created_at == run->now_ms);
}

void operate_read_in_vain(Run *run)
{
    SessionPick pick = {.reason = ""};
    while (!*pick.reason)
        pick = pick_session(run);
    char *id = text_of(pick.id);
    switch (run_below(run, 8)) {
    case 0: {
        GetSessionRequest request = GET_SESSION_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, GET_SESSION, GetSession, &request, pick.reason);
        break;
    }
    case 1: {
        BuildContextRequest request = BUILD_CONTEXT_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, BUILD_CONTEXT, BuildContext, &request, pick.reason);
        break;
    }
    case 2: {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, MESSAGES_FOR_SESSION, MessagesForSession, &request, pick.reason);
        break;
    }
    case 3: {
        ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, LIST_MESSAGES, ListMessages, &request, pick.reason);
        break;
    }
    case 4: {
        ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, LIST_SESSION_MEMORIES, ListSessionMemories, &request, pick.reason);
        break;
    }
    case 5: {
        ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
        request.after_sequence = run->last_event_sequence;
        request.session_id = id;
        RUN_CALL(run, LIST_EVENTS, ListEvents, &request, *id ? pick.reason : ""); // "": of all
        break;
    }
    case 6: {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        const ModelSession *session = pick_live(run);
        request.session_id = text_of(session ? session->id : id);
        request.cursor = text_of("of another listing");
        const char *reason = session ? "INVALID_ARGUMENT" : pick.reason;
        RUN_CALL(run, MESSAGES_FOR_SESSION, MessagesForSession, &request, reason);
        break;
    }
    default: {
        GetSessionTodosRequest request = GET_SESSION_TODOS_REQUEST__INIT;
        request.session_id = id;
        RUN_CALL(run, GET_SESSION_TODOS, GetSessionTodos, &request, pick.reason);
        break;
    }
    }
}

// The oldest event that is kept: a ring of event_count_max.
static uint64_t oldest_event(const Run *run)
{
    uint64_t last = run->last_event_sequence;
    return last > run->event_count_max ? last - run->event_count_max + 1 : 1;
}

void operate_list_events_in_vain(Run *run)
{
    ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
    const char *reason = "STORE_CHANGED";
    request.limit = 1;
    switch (run_below(run, 3)) {
    case 0: request.instance_id = text_of("another"); break;
    case 1: request.after_sequence = run->last_event_sequence + 1; break;
    default:
        if (oldest_event(run) < 2) return;
        request.after_sequence = oldest_event(run) - 2;
        reason = "EVENTS_GONE";
        break;
    }
    RUN_CALL(run, LIST_EVENTS, ListEvents, &request, reason);
    if (strcmp(reason, "EVENTS_GONE") != 0) return;
    request.after_sequence++;
    ListEventsResponse *response = RUN_CALL(run, LIST_EVENTS, ListEvents, &request, "");
    RUN_CHECK(run, response->oldest_sequence == oldest_event(run));
    RUN_CHECK(run, response->newest_sequence == run->last_event_sequence);
}

// Moves the wall clock only.
static void step(Run *run, int64_t ms)
{
    __atomic_add_fetch(&run->now_ms, ms, __ATOMIC_RELAXED);
    if (run->now_ms > run->latest_ms) run->latest_ms = run->now_ms;
}

static void pass(Run *run, int64_t ms)
{
    __atomic_add_fetch(&run->boot_ms, ms, __ATOMIC_RELAXED);
    run->aged_ms += ms;
    step(run, ms);
}

void operate_move_clock(Run *run)
{
    static const int64_t HOUR_MS = 3600 * 1000;
    uint64_t die = run_below(run, 1000);
    if (die < 800) {
        pass(run, (int64_t)run_below(run, 20));
    } else if (die < 880) {
        pass(run, (int64_t)run_below(run, (uint64_t)HOUR_MS));
    } else if (die < 900) {
        step(run, (int64_t)run_below(run, (uint64_t)HOUR_MS));
    } else if (die < 990) {
        step(run, -(int64_t)run_below(run, (uint64_t)HOUR_MS / 2));
    } else if (die < 995) {
        pass(run, (int64_t)run_below(run, 100 * (uint64_t)HOUR_MS));
    } else {
        step(run, (int64_t)run_below(run, 100 * (uint64_t)HOUR_MS));
    }
}

void operate_reopen(Run *run)
{
    run_reopen(run);
}
