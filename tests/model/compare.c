// Comparing one session.

#include "compare.h"

#include <stdlib.h>

#include "operate.h"

enum { KIND_COUNT_MAX = 3 };

typedef struct Expected {
    Entry **entries;
    size_t count;
} Expected;

// Members of requests and responses that every listing has, by their names.
static void *member_of(ProtobufCMessage *message, const char *name, void **out_quantifier)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    CHECK(field);
    if (out_quantifier) *out_quantifier = (uint8_t *)message + field->quantifier_offset;
    return (uint8_t *)message + field->offset;
}

static void set_page(Run *run, ProtobufCMessage *request, size_t expected)
{
    uint32_t limit = 0, bytes = 0;
    if (run_chance(run, 60)) limit = (uint32_t)(1 + expected / 4 + run_below(run, expected + 2));
    if (limit > 1000) limit = 1000;
    if (run_chance(run, 20)) bytes = (uint32_t)(2000 + run_below(run, 100 * (expected + 1)));
    *(uint32_t *)member_of(request, "limit", NULL) = limit;
    *(uint32_t *)member_of(request, "page_bytes", NULL) = bytes;
}

Pages compare_read_pages(Run *run, RunMethod method, ProtobufCMessage *request, size_t expected)
{
    Pages pages = {.records = run_alloc(run, (expected + 1) * sizeof(ProtobufCMessage *))};
    for (size_t empty = 0;;) {
        set_page(run, request, expected);
        ProtobufCMessage *response = run_call(run, method, request, "");
        if (!pages.first) pages.first = response;
        const ProtobufCFieldDescriptor *field = &response->descriptor->fields[0];
        size_t count = *(size_t *)(void *)((uint8_t *)response + field->quantifier_offset);
        ProtobufCMessage **records =
            *(ProtobufCMessage ***)(void *)((uint8_t *)response + field->offset);
        uint32_t limit = *(uint32_t *)member_of(request, "limit", NULL);
        if (limit && count > limit) run_differs(run, "%zu records at a limit of %u", count, limit);
        if (pages.count + count > expected) {
            run_differs(run, "%s lists more than %zu records, the next is %s",
                        request->descriptor->short_name, expected,
                        *(char **)(void *)((uint8_t *)records[expected - pages.count] +
                                           records[0]->descriptor->fields[0].offset));
        }
        if (count) memcpy(pages.records + pages.count, records, count * sizeof(*records));
        pages.count += count;
        char *cursor = *(char **)member_of(response, "next_cursor", NULL);
        if (!*cursor) return pages;
        empty = count ? 0 : empty + 1;
        if (empty > 2) run_differs(run, "a listing has empty pages only");
        *(char **)member_of(request, "cursor", NULL) = cursor;
    }
}

bool compare_kind_is_listed(const MessageKind *kinds, size_t count, MessageKind kind)
{
    if (count == 0) return kind == MESSAGE_KIND_CONVERSATION || kind == MESSAGE_KIND_INJECTED;
    for (size_t i = 0; i < count; i++) {
        if (kinds[i] == kind) return true;
    }
    return false;
}

static size_t random_kinds(Run *run, MessageKind kinds[KIND_COUNT_MAX])
{
    size_t count = run_chance(run, 50) ? 0 : 1 + run_below(run, KIND_COUNT_MAX);
    for (size_t i = 0; i < count; i++)
        kinds[i] = (MessageKind)(1 + run_below(run, 8));
    return count;
}

static void reverse(Expected *expected)
{
    for (size_t i = 0; i < expected->count / 2; i++) {
        Entry *swapped = expected->entries[i];
        expected->entries[i] = expected->entries[expected->count - 1 - i];
        expected->entries[expected->count - 1 - i] = swapped;
    }
}

// Reads the listing that `request` asks for and compares it with what is expected.
static ProtobufCMessage *check_entries(Run *run, RunMethod method, ProtobufCMessage *request,
                                       const Expected *expected)
{
    Pages pages = compare_read_pages(run, method, request, expected->count);
    for (size_t i = 0; i < pages.count; i++) {
        content_check(run, (const Message *)pages.records[i], expected->entries[i]);
    }
    if (pages.count < expected->count) {
        run_differs(run, "%s ends after %zu of %zu entries, before %s of kind %d",
                    request->descriptor->short_name, pages.count, expected->count,
                    expected->entries[pages.count]->id, (int)expected->entries[pages.count]->kind);
    }
    return pages.first;
}

Entry *compare_random_leaf(Run *run, ModelSession *session, char **out_through)
{
    *out_through = text_of("");
    if (run_chance(run, 70)) return session->head;
    EntryPick pick = pick_entry(run, session);
    const char *reason = pick.reason;
    if (pick.entry && !model_in_tree(&run->model, session, pick.entry)) reason = "NOT_IN_TREE";
    if (!*reason) {
        *out_through = text_of(pick.id);
        return pick.entry;
    }
    LatestMarkerRequest request = LATEST_MARKER_REQUEST__INIT;
    request.session_id = session->id;
    request.through_message_id = text_of(pick.id);
    RUN_CHECK(run, !RUN_CALL(run, LATEST_MARKER, LatestMarker, &request, reason));
    return session->head;
}

// The entries from the beginning through `leaf` that are not deleted and of the kinds; those of
// `own` alone unless it is NULL.
static Expected expect_history(Run *run, Entry *leaf, const MessageKind *kinds, size_t kind_count,
                               const ModelSession *own)
{
    size_t count;
    Entry **history = model_history(&run->model, leaf, &count);
    Expected expected = {.entries = run_alloc(run, (count + 1) * sizeof(Entry *))};
    for (size_t i = 0; i < count; i++) {
        Entry *entry = history[i];
        if (entry->deleted_at || (own && entry->owner != own)) continue;
        if (!compare_kind_is_listed(kinds, kind_count, entry->kind)) continue;
        expected.entries[expected.count++] = entry;
    }
    return expected;
}

static void compare_history(Run *run, ModelSession *session)
{
    MessageKind kinds[KIND_COUNT_MAX];
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session->id;
    request.kinds = kinds;
    request.n_kinds = random_kinds(run, kinds);
    request.newest_first = run_chance(run, 50);
    Entry *leaf = compare_random_leaf(run, session, &request.through_message_id);
    Expected expected = expect_history(run, leaf, kinds, request.n_kinds, NULL);
    if (request.newest_first) reverse(&expected);
    check_entries(run, RUN_MESSAGES_FOR_SESSION, &request.base, &expected);
}

static void compare_direct(Run *run, ModelSession *session)
{
    MessageKind kinds[KIND_COUNT_MAX];
    MessagesDirectForSessionRequest request = MESSAGES_DIRECT_FOR_SESSION_REQUEST__INIT;
    request.session_id = session->id;
    request.kinds = kinds;
    request.n_kinds = random_kinds(run, kinds);
    request.newest_first = run_chance(run, 50);
    Entry *leaf = compare_random_leaf(run, session, &request.through_message_id);
    Expected expected = expect_history(run, leaf, kinds, request.n_kinds, session);
    if (request.newest_first) reverse(&expected);
    check_entries(run, RUN_MESSAGES_DIRECT_FOR_SESSION, &request.base, &expected);
}

static bool log_matches(const ListMessagesRequest *request, const Entry *entry)
{
    bool is_deleted = entry->deleted_at != 0;
    if (is_deleted && request->deleted != DELETED_FILTER_INCLUDE &&
        request->deleted != DELETED_FILTER_ONLY) {
        return false;
    }
    if (!is_deleted && request->deleted == DELETED_FILTER_ONLY) return false;
    if (request->n_kinds &&
        !compare_kind_is_listed(request->kinds, request->n_kinds, entry->kind)) {
        return false;
    }
    return (!request->role || request->role == entry->role) &&
           (!request->status || request->status == entry->status) &&
           (!*request->subtype || strcmp(request->subtype, entry->subtype) == 0) &&
           (!*request->target_id || strcmp(request->target_id, entry->target_id) == 0);
}

static void compare_log(Run *run, ModelSession *session)
{
    MessageKind kinds[KIND_COUNT_MAX];
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    request.session_id = session->id;
    request.kinds = kinds;
    request.n_kinds = random_kinds(run, kinds);
    request.newest_first = run_chance(run, 50);
    request.deleted = (DeletedFilter)run_below(run, 4);
    if (run_chance(run, 20)) request.role = (Role)run_below(run, 6);
    if (run_chance(run, 20)) request.status = (MessageStatus)run_below(run, 5);
    if (session->entry_count && run_chance(run, 20)) {
        const Entry *entry = session->entries[run_below(run, session->entry_count)];
        request.subtype = text_of(entry->subtype);
        request.target_id = text_of(entry->target_id);
    }
    Expected expected = {.entries = run_alloc(run, (session->entry_count + 1) * sizeof(Entry *))};
    for (size_t i = 0; i < session->entry_count; i++) {
        if (!log_matches(&request, session->entries[i])) continue;
        expected.entries[expected.count++] = session->entries[i];
    }
    if (request.newest_first) reverse(&expected);
    check_entries(run, RUN_LIST_MESSAGES, &request.base, &expected);
}

// The entries after the cut-off, without open ones; and without turns of the system that a marker
// with parts keeps.
static Expected expect_window(Run *run, Entry *leaf, const Entry *marker, const MessageKind *kinds,
                              size_t kind_count)
{
    const Entry *cut_off = NULL;
    if (marker) cut_off = marker->is_marker_open ? marker : marker->cut_off;
    Expected all = expect_history(run, leaf, kinds, kind_count, NULL);
    Expected expected = {.entries = all.entries};
    // Along the history the entries after the cut-off are those from which one walks back to it.
    for (size_t i = 0; i < all.count; i++) {
        Entry *entry = all.entries[i];
        if (entry->status == MESSAGE_STATUS_OPEN || entry == cut_off) continue;
        if (cut_off && !model_history_holds(entry, cut_off)) continue;
        bool is_system = entry->kind == MESSAGE_KIND_CONVERSATION && entry->role == ROLE_SYSTEM;
        bool is_kept = marker && model_history_holds(marker, entry);
        if (is_system && is_kept && marker->has_parts) continue;
        expected.entries[expected.count++] = entry;
    }
    return expected;
}

static void check_marker(Run *run, const Message *actual, Entry *marker)
{
    if ((actual != NULL) != (marker != NULL)) {
        run_differs(run, "the latest marker is %s, not %s", actual ? actual->id : "none",
                    marker ? marker->id : "none");
    }
    if (marker) content_check(run, actual, marker);
}

static void compare_window(Run *run, ModelSession *session)
{
    MessageKind kinds[KIND_COUNT_MAX];
    MessagesSinceLatestMarkerRequest request = MESSAGES_SINCE_LATEST_MARKER_REQUEST__INIT;
    request.session_id = session->id;
    request.kinds = kinds;
    request.n_kinds = random_kinds(run, kinds);
    Entry *leaf = compare_random_leaf(run, session, &request.through_message_id);
    Entry *marker = model_latest_marker(leaf);
    Expected expected = expect_window(run, leaf, marker, kinds, request.n_kinds);
    ProtobufCMessage *first =
        check_entries(run, RUN_MESSAGES_SINCE_LATEST_MARKER, &request.base, &expected);
    check_marker(run, ((MessagesSinceLatestMarkerResponse *)first)->marker, marker);
}

static void compare_markers(Run *run, ModelSession *session)
{
    LatestMarkerRequest latest = LATEST_MARKER_REQUEST__INIT;
    latest.session_id = session->id;
    Entry *leaf = compare_random_leaf(run, session, &latest.through_message_id);
    LatestMarkerResponse *response = RUN_CALL(run, LATEST_MARKER, LatestMarker, &latest, "");
    check_marker(run, response->entry, model_latest_marker(leaf));

    MessageKind kinds[] = {MESSAGE_KIND_COMPACTION};
    ListMarkersForSessionRequest request = LIST_MARKERS_FOR_SESSION_REQUEST__INIT;
    request.session_id = session->id;
    request.through_message_id = latest.through_message_id;
    Expected expected = expect_history(run, leaf, kinds, 1, NULL);
    check_entries(run, RUN_LIST_MARKERS_FOR_SESSION, &request.base, &expected);
}

static void check_memories(Run *run, ModelSession *session, Memory **memories, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < session->memory_count; i++) {
        const Memory *memory = session->memories[i];
        if (memory->deleted_at) continue;
        if (at == count) run_differs(run, "memory %s is missing", memory->id);
        run_compare(run, "memory", &memories[at++]->base, &memory->base);
    }
    if (at != count) run_differs(run, "memory %s is too much", memories[at]->id);
}

static void check_todos(Run *run, ModelSession *session, const Todos *todos)
{
    Todos none = TODOS__INIT;
    TodoSummary summary = TODO_SUMMARY__INIT;
    none.session_id = session->id;
    none.summary = &summary;
    run_compare(run, "todos", &todos->base, session->todos ? &session->todos->base : &none.base);
}

// Settings in force: of each subtype the newest in the history; in any order.
static void check_settings(Run *run, Entry *leaf, const BuildContextResponse *context)
{
    const char *known[64];
    size_t count = 0;
    for (Entry *entry = leaf; entry; entry = entry->parent) {
        if (entry->kind != MESSAGE_KIND_SETTING || entry->deleted_at) continue;
        size_t i = 0;
        while (i < count && strcmp(known[i], entry->subtype) != 0)
            i++;
        if (i < count) continue;
        known[count++] = entry->subtype;
        const Message *found = NULL;
        for (i = 0; i < context->n_settings; i++) {
            if (strcmp(context->settings[i]->id, entry->id) == 0) found = context->settings[i];
        }
        if (!found) run_differs(run, "setting %s (%s) is missing", entry->id, entry->subtype);
        content_check(run, found, entry);
    }
    RUN_CHECK(run, context->n_settings == count);
}

static void check_model(Run *run, ModelSession *session, const Entry *leaf, const ModelRef *actual)
{
    const Entry *setting = NULL, *agent = NULL;
    for (const Entry *entry = leaf; entry; entry = entry->parent) {
        if (entry->deleted_at || !entry->model_name) continue;
        bool is_setting = entry->kind == MESSAGE_KIND_SETTING;
        if (is_setting && !setting && strcmp(entry->subtype, "model") == 0) setting = entry;
        bool is_agent = entry->kind == MESSAGE_KIND_CONVERSATION && entry->role == ROLE_ASSISTANT;
        if (is_agent && !agent) agent = entry;
    }
    const Entry *from = setting ? setting : agent;
    ModelRef expected = MODEL_REF__INIT;
    expected.provider = from ? text_of(from->model_provider) : session->record->model->provider;
    expected.name = from ? text_of(from->model_name) : session->record->model->name;
    RUN_CHECK(run, actual != NULL);
    run_compare(run, "the context's model", &actual->base, &expected.base);
}

static void compare_context(Run *run, ModelSession *session)
{
    static const MessageKind KINDS[] = {MESSAGE_KIND_CONVERSATION, MESSAGE_KIND_INJECTED,
                                        MESSAGE_KIND_BRANCH_SUMMARY};
    BuildContextRequest request = BUILD_CONTEXT_REQUEST__INIT;
    request.session_id = session->id;
    Entry *leaf = compare_random_leaf(run, session, &request.through_message_id);
    Entry *marker = model_latest_marker(leaf);
    Expected expected = expect_window(run, leaf, marker, KINDS, 3);
    BuildContextResponse *context =
        (BuildContextResponse *)check_entries(run, RUN_BUILD_CONTEXT, &request.base, &expected);
    check_marker(run, context->marker, marker);
    RUN_CHECK(run, strcmp(context->head_id, session->head ? session->head->id : "") == 0);
    check_settings(run, leaf, context);
    check_model(run, session, leaf, context->model);
    check_memories(run, session, context->memories, context->n_memories);
    RUN_CHECK(run, context->todos != NULL);
    check_todos(run, session, context->todos);
}

static void compare_memories(Run *run, ModelSession *session)
{
    ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
    request.session_id = session->id;
    Pages pages =
        compare_read_pages(run, RUN_LIST_SESSION_MEMORIES, &request.base, session->memory_count);
    check_memories(run, session, (Memory **)pages.records, pages.count);
}

static void compare_calls(Run *run, ModelSession *session)
{
    ListCallsRequest request = LIST_CALLS_REQUEST__INIT;
    request.session_id = session->id;
    request.newest_first = run_chance(run, 50);
    Pages pages = compare_read_pages(run, RUN_LIST_CALLS, &request.base, session->call_count);
    RUN_CHECK(run, pages.count == session->call_count);
    for (size_t i = 0; i < pages.count; i++) {
        size_t index = request.newest_first ? pages.count - 1 - i : i;
        run_compare(run, "call", pages.records[i], &session->calls[index]->base);
    }
}

static void compare_todos(Run *run, ModelSession *session)
{
    GetSessionTodosRequest request = GET_SESSION_TODOS_REQUEST__INIT;
    request.session_id = session->id;
    check_todos(run, session,
                RUN_CALL(run, GET_SESSION_TODOS, GetSessionTodos, &request, "")->todos);
}

static void compare_record(Run *run, ModelSession *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = session->id;
    GetSessionResponse *response = RUN_CALL(run, GET_SESSION, GetSession, &request, "");
    run_compare_session(run, response->session, session, /* is_brief= */ false);

    LatestUserMessageIdRequest latest = LATEST_USER_MESSAGE_ID_REQUEST__INIT;
    latest.session_id = session->id;
    const char *id =
        RUN_CALL(run, LATEST_USER_MESSAGE_ID, LatestUserMessageId, &latest, "")->message_id;
    const char *wanted = model_latest_user(session);
    if (strcmp(id, wanted) != 0) {
        run_differs(run, "the latest user message is '%s', not '%s'", id, wanted);
    }
}

void compare_session(Run *run, ModelSession *session, bool is_full)
{
    static void (*const PARTS[])(Run *, ModelSession *) = {
        compare_history, compare_direct,  compare_log,       compare_window,
        compare_markers, compare_context, compare_memories,  compare_todos,
        compare_calls,   compare_parts,   compare_originals,
    };
    compare_record(run, session);
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(*PARTS); i++) {
        if (is_full || run_chance(run, 20)) PARTS[i](run, session);
    }
    run_forget(run);
}
