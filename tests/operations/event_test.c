// Events: what each write leaves, and how they are read.

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"
#include "raw.h"

static ListEventsResponse *events_after(Fixture *f, uint64_t sequence)
{
    return CALL_OK(f, list_events, ListEvents, {.after_sequence = sequence});
}

// The one event that was written after `sequence`, which must be of this type and session.
static Event *only_event(Fixture *f, uint64_t sequence, const char *type, const char *session)
{
    ListEventsResponse *page = events_after(f, sequence);
    CHECK_EQ(page->n_events, 1);
    Event *event = page->events[0];
    CHECK_EQ(event->sequence, sequence + 1);
    CHECK_STR(event->type, type);
    CHECK_STR(event->session_id, session);
    CHECK_STR(event->instance_id, page->instance_id);
    CHECK_EQ(event->created_at, f->now_ms);
    return event;
}

static uint64_t publish_ok(Fixture *f, const char *session, const char *type)
{
    return CALL_OK(f, publish_event, PublishEvent,
                   {.session_id = CHARS(session), .type = CHARS(type)})
        ->sequence;
}

TEST(event_of_each_write_on_a_session)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK_EQ(newest_sequence(f), 0);
    const char *root = session_ok(f);
    CHECK_STR(only_event(f, 0, "session.created", root)->record_id, "");
    const char *fork = fork_ok(f, root, NULL);
    CHECK_STR(only_event(f, 1, "session.created", fork)->record_id, root);
    const char *subagent = subagent_ok(f, root);
    CHECK_STR(only_event(f, 2, "session.created", subagent)->record_id, root);
    CALL_OK(f, rename_session, RenameSession, {.session_id = CHARS(root), .slug = "s"});
    only_event(f, 3, "session.updated", root);
    CALL_OK(f, rename_session, RenameSession, {.session_id = CHARS(root), .slug = "s"});
    archive_ok(f, fork, true);
    only_event(f, 4, "session.updated", fork);
    delete_ok(f, root);
    only_event(f, 5, "session.deleted", root);
    delete_ok(f, root);
    restore_ok(f, root);
    only_event(f, 6, "session.restored", root);
    restore_ok(f, root);
    purge_ok(f, subagent, /* keep_for_forks= */ false);
    only_event(f, 7, "session.purged", subagent);
}

TEST(event_of_each_write_on_messages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_ASSISTANT, "m1");
    Event *event = only_event(f, 1, "message.appended", session);
    CHECK_STR(event->message_id, m1);
    CHECK_EQ(event->role, ROLE_ASSISTANT);
    CHECK_EQ(event->n_totals, 0);
    const char *marker = marker_ok(f, session, m1, "s");
    event = only_event(f, 2, "marker.added", session);
    CHECK_STR(event->message_id, marker);
    const char *branch = append_after_ok(f, session, m1, "branch");
    CHECK_STR(only_event(f, 3, "message.appended", session)->message_id, branch);
    rewind_ok(f, session, m1);
    CHECK_STR(only_event(f, 4, "session.rewound", session)->message_id, m1);
    message_delete_ok(f, m1);
    event = only_event(f, 5, "message.deleted", session);
    CHECK_STR(event->message_id, m1);
    CHECK_EQ(event->role, ROLE_ASSISTANT);
    message_purge_ok(f, m1);
    CHECK_STR(only_event(f, 6, "message.purged", session)->message_id, m1);
}

TEST(event_of_memories_and_todos)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *memory =
        CALL_OK(f, remember_session_memory, RememberSessionMemory,
                {.session_id = CHARS(session), .memory = &(NewMemory){.content = "x"}})
            ->memory->id;
    CHECK_STR(only_event(f, 1, "memory.remembered", session)->record_id, memory);
    CALL_OK(f, forget_session_memory, ForgetSessionMemory,
            {.session_id = CHARS(session), .memory_id = CHARS(memory)});
    CHECK_STR(only_event(f, 2, "memory.forgotten", session)->record_id, memory);
    CALL_OK(f, replace_session_todos, ReplaceSessionTodos, {.session_id = CHARS(session)});
    only_event(f, 3, "todos.replaced", session);
}

TEST(event_of_totals_names_what_moved_leaf_first)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *child = subagent_ok(f, root);
    Totals delta = {.cost_nano_usd = 5};
    CALL_OK(f, update_session_totals, UpdateSessionTotals,
            {.session_id = CHARS(child), .delta = &delta});
    Event *event = only_event(f, 2, "totals.updated", child);
    CHECK_EQ(event->n_totals, 1);
    CHECK_STR(event->totals[0]->session_id, child);
    CHECK_EQ(event->totals[0]->totals->cost_nano_usd, 5);
    CALL_OK(f, propagate_totals, PropagateTotals, {.session_id = CHARS(child), .delta = &delta});
    event = only_event(f, 3, "totals.updated", child);
    CHECK_EQ(event->n_totals, 2);
    CHECK_STR(event->totals[0]->session_id, child);
    CHECK_EQ(event->totals[0]->totals->cost_nano_usd, 10);
    CHECK_STR(event->totals[1]->session_id, root);
    CHECK_EQ(event->totals[1]->totals->cost_nano_usd, 5);
    NewMessage message = {.role = ROLE_ASSISTANT, .usage = &(Usage){.cost_nano_usd = 1}};
    CALL_OK(f, append_message, AppendMessage,
            {.session_id = CHARS(child), .message = &message, .propagate_usage = true});
    event = only_event(f, 4, "message.appended", child);
    CHECK_EQ(event->n_totals, 2);
    CHECK_EQ(event->totals[1]->totals->cost_nano_usd, 6);
}

TEST(event_carries_the_operation_id_of_its_write)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_OK_WITH(f, "op-7", append_message, AppendMessage,
                 {.session_id = CHARS(session), .message = text_message(f, ROLE_USER, "m")});
    CHECK_STR(only_event(f, 1, "message.appended", session)->operation_id, "op-7");
    append_ok(f, session, ROLE_USER, "m");
    CHECK_STR(only_event(f, 2, "message.appended", session)->operation_id, "");
}

TEST(event_sequences_have_no_gap_and_chain_within_each_session)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *sessions[2] = {session_ok(f), session_ok(f)};
    for (int i = 0; i < 6; i++) {
        append_ok(f, sessions[i % 2], ROLE_USER, "m");
        entry_fails(f, sessions[i % 2], &(NewMessage){.role = 0}, "INVALID_ARGUMENT");
        entry_fails(f, UNKNOWN_ID, text_message(f, ROLE_USER, "m"), "SESSION_NOT_FOUND");
        if (i == 2) fixture_reopen(f);
        if (i == 3) publish_ok(f, "", "global");
    }
    ListEventsResponse *page = events_after(f, 0);
    CHECK_EQ(page->n_events, 9);
    uint64_t previous[2] = {0, 0};
    for (size_t i = 0; i < page->n_events; i++) {
        const Event *event = page->events[i];
        CHECK_EQ(event->sequence, i + 1);
        if (!*event->session_id) {
            CHECK_EQ(event->previous_session_sequence, 0);
            continue;
        }
        int which = strcmp(event->session_id, sessions[0]) != 0;
        CHECK_EQ(event->previous_session_sequence, previous[which]);
        previous[which] = event->sequence;
    }
    CHECK_EQ(get_ok(f, sessions[0])->last_event_sequence, previous[0]);
    CHECK_EQ(get_ok(f, sessions[1])->last_event_sequence, previous[1]);
}

TEST(event_listing_goes_on_after_a_sequence_and_by_limit)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (int i = 0; i < 6; i++)
        append_ok(f, session, ROLE_USER, "m");
    ListEventsRequest request = {.limit = 3};
    uint64_t seen = 0;
    for (int pages = 1;; pages++) {
        ListEventsResponse *page = CALL_OK(f, list_events, ListEvents, request);
        for (size_t i = 0; i < page->n_events; i++)
            CHECK_EQ(page->events[i]->sequence, ++seen);
        CHECK_EQ(page->oldest_sequence, 1);
        CHECK_EQ(page->newest_sequence, 7);
        CHECK_EQ(page->next_after_sequence, seen);
        CHECK_EQ(page->more, pages < 3);
        request.after_sequence = page->next_after_sequence;
        if (!page->more) break;
    }
    CHECK_EQ(seen, 7);
    CHECK_EQ(events_after(f, 7)->n_events, 0);
    CHECK_EQ(events_after(f, 7)->next_after_sequence, 7);
}

TEST(event_listing_of_one_session_leaves_the_others_out)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *first = session_ok(f);
    const char *second = session_ok(f);
    append_ok(f, first, ROLE_USER, "m");
    append_ok(f, second, ROLE_USER, "m");
    publish_ok(f, "", "global");
    ListEventsRequest request = {.session_id = CHARS(first), .limit = 1};
    ListEventsResponse *page = CALL_OK(f, list_events, ListEvents, request);
    CHECK_EQ(page->n_events, 1);
    CHECK_EQ(page->events[0]->sequence, 1);
    CHECK(page->more);
    request.after_sequence = page->next_after_sequence;
    request.limit = 0;
    page = CALL_OK(f, list_events, ListEvents, request);
    CHECK_EQ(page->n_events, 1);
    CHECK_EQ(page->events[0]->sequence, 3);
    CHECK(!page->more);
    CHECK_EQ(page->next_after_sequence, 5);
}

TEST(event_listing_names_what_is_wrong)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CALL_FAILS(f, list_events, ListEvents, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, list_events, ListEvents, "INVALID_ARGUMENT", {.session_id = "x"});
    CHECK(strstr(f->status.message, "session_id"));
    CALL_FAILS(f, list_events, ListEvents, "INVALID_ARGUMENT", {.wait_ms = WAIT_MS_MAX + 1});
    CHECK(strstr(f->status.message, "wait_ms"));
    CALL_FAILS(f, list_events, ListEvents, "INVALID_ARGUMENT", {.limit = LIST_LIMIT_MAX + 1});
    CALL_FAILS(f, list_events, ListEvents, "INVALID_ARGUMENT", {.page_bytes = PAGE_BYTES_MAX + 1});
    purge_ok(f, session, /* keep_for_forks= */ false);
    CALL_FAILS(f, list_events, ListEvents, "SESSION_NOT_FOUND", {.session_id = CHARS(session)});
}

TEST(event_listing_pages_by_bytes_and_bounds_the_whole_reply)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    PublishEventRequest publish = {.type = "mine", .data_json = json_of_size(1500)};
    for (int i = 0; i < 12; i++)
        CALL_OK(f, publish_event, PublishEvent, publish);
    free(publish.data_json);
    for (uint32_t page_bytes = 4000; page_bytes < 12000; page_bytes += 999) {
        ListEventsRequest request = {.page_bytes = page_bytes};
        uint64_t seen = 0;
        do {
            Raw *body = raw_of(f, &list_events_request__descriptor, &request.base);
            CHECK(raw_ok(f, "ListEvents", body).size + 16 <= page_bytes);
            ListEventsResponse *page = CALL_OK(f, list_events, ListEvents, request);
            CHECK(page->n_events > 0);
            for (size_t i = 0; i < page->n_events; i++) {
                CHECK_EQ(page->events[i]->sequence, ++seen);
            }
            request.after_sequence = page->next_after_sequence;
        } while (seen < 12);
    }
}

TEST(event_listing_passes_events_of_several_chunks)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    // Of such sizes that the stored events lie around the chunk limit.
    for (size_t size = 3900; size < 3990; size += 3) {
        PublishEventRequest publish = {.type = "large", .data_json = json_of_size(size)};
        CALL_OK(f, publish_event, PublishEvent, publish);
        free(publish.data_json);
    }
    append_ok(f, session, ROLE_USER, "m");
    ListEventsResponse *all = events_after(f, 0);
    CHECK_EQ(all->n_events, 32);
    for (size_t i = 0; i < 30; i++) {
        CHECK_EQ(all->events[i + 1]->sequence, i + 2);
        CHECK_EQ(strlen(all->events[i + 1]->data_json), 3900 + 3 * i);
    }
    CHECK_EQ(CALL_OK(f, list_events, ListEvents, {.session_id = CHARS(session)})->n_events, 2);
}

TEST(event_listing_says_when_the_store_is_another)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ListEventsResponse *page = events_after(f, 0);
    CHECK_EQ(strlen(page->instance_id), 26);
    CALL_OK(f, list_events, ListEvents, {.instance_id = page->instance_id, .after_sequence = 1});
    CALL_FAILS(f, list_events, ListEvents, "STORE_CHANGED", {.instance_id = UNKNOWN_ID});
    CHECK_EQ(f->status.code, STATUS_OUT_OF_RANGE);
    CALL_FAILS(f, list_events, ListEvents, "STORE_CHANGED", {.after_sequence = 2});
    CALL_FAILS(f, list_events, ListEvents, "STORE_CHANGED", {.after_sequence = UINT64_MAX});
    const char *before = page->instance_id;
    fixture_reopen(f);
    CHECK_STR(events_after(f, 0)->instance_id, before);
}

TEST(event_ring_keeps_the_newest_and_says_what_is_gone)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    f->options.store.event_count_max = 10;
    fixture_reopen(f);
    for (int i = 0; i < 25; i++)
        publish_ok(f, "", "mine");
    CALL_FAILS(f, list_events, ListEvents, "EVENTS_GONE", {.after_sequence = 0});
    CHECK_EQ(f->status.code, STATUS_OUT_OF_RANGE);
    CALL_FAILS(f, list_events, ListEvents, "EVENTS_GONE", {.after_sequence = 14});
    ListEventsResponse *page = events_after(f, 15);
    CHECK_EQ(page->n_events, 10);
    CHECK_EQ(page->oldest_sequence, 16);
    CHECK_EQ(page->events[0]->sequence, 16);
    CHECK_EQ(table_rows(f, "events"), 10);
    f->options.store.event_count_max = 4;
    fixture_reopen(f);
    for (int i = 0; i < 6; i++)
        publish_ok(f, "", "mine");
    page = events_after(f, 27);
    CHECK_EQ(page->n_events, 4);
    CHECK_EQ(page->oldest_sequence, 28);
    CHECK_EQ(table_rows(f, "events"), 4);
}

TEST(event_ring_loses_old_events_twice_as_fast_as_it_grows)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    for (int i = 0; i < 100; i++)
        publish_ok(f, "", "old");
    f->now_ms += EVENT_AGE_MS_DEFAULT + 1;
    for (int i = 0; i < 100; i++)
        publish_ok(f, "", "new");
    ListEventsResponse *page = events_after(f, 199);
    CHECK_EQ(page->newest_sequence, 200);
    CHECK_EQ(page->oldest_sequence, 101);
    CHECK_EQ(table_rows(f, "events"), 100);
}

TEST(step_of_the_wall_clock_removes_no_event)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    for (int i = 0; i < 10; i++)
        publish_ok(f, "", "old");
    fixture_step_clock(f, EVENT_AGE_MS_DEFAULT + 1);
    for (int i = 0; i < 10; i++)
        publish_ok(f, "", "new");
    CHECK_EQ(events_after(f, 0)->n_events, 20);
    fixture_step_clock(f, -3 * EVENT_AGE_MS_DEFAULT);
    publish_ok(f, "", "earlier");
    ListEventsResponse *page = events_after(f, 0);
    CHECK_EQ(page->n_events, 21);
    CHECK(page->events[20]->created_at < page->events[0]->created_at);
}

TEST(glitch_into_the_far_future_does_not_keep_events_for_ever)
{
    static const int64_t century_ms = INT64_C(100) * 365 * 24 * 3600 * 1000;
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    fixture_step_clock(f, century_ms);
    publish_ok(f, "", "in.a.hundred.years");
    fixture_step_clock(f, -century_ms);
    publish_ok(f, "", "today");
    f->now_ms += EVENT_AGE_MS_DEFAULT;
    publish_ok(f, "", "in.a.week");
    CHECK_EQ(events_after(f, 0)->oldest_sequence, 1);
    f->now_ms += 1;
    publish_ok(f, "", "later");
    CHECK_EQ(events_after(f, 2)->oldest_sequence, 3);
    CHECK_EQ(table_rows(f, "events"), 2);
}

TEST(event_of_several_chunks_is_listed_and_removed_by_age)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    // Around the ends of its first two chunks, where the header counts.
    for (int size = 2 * VALUE_BYTES_MAX - 200; size < 2 * VALUE_BYTES_MAX; size++) {
        char *data = text_of_size((size_t)size);
        data[0] = data[size - 1] = '"';
        CALL_OK(f, publish_event, PublishEvent, {.type = "mine", .data_json = data});
        ListEventsResponse *page = events_after(f, newest_sequence(f) - 1);
        CHECK_EQ(page->n_events, 1);
        CHECK_STR(page->events[0]->data_json, data);
        free(data);
    }
    f->now_ms += EVENT_AGE_MS_DEFAULT + 1;
    for (int i = 0; i < 200; i++)
        publish_ok(f, "", "new");
    CHECK_EQ(table_rows(f, "events"), 200);
}

TEST(event_published_comes_back_with_its_fields)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *message = append_ok(f, session, ROLE_USER, "m");
    PublishEventRequest request = {
        .session_id = CHARS(session),
        .type = "tool.progress",
        .message_id = CHARS(message),
        .record_id = CHARS(message),
        .role = ROLE_TOOL,
        .data_json = "{\"line\": 1}",
    };
    PublishEventResponse *response = CALL_OK(f, publish_event, PublishEvent, request);
    CHECK_EQ(response->sequence, 3);
    CHECK_EQ(response->created_at, f->now_ms);
    Event *event = only_event(f, 2, "tool.progress", session);
    CHECK_STR(event->instance_id, response->instance_id);
    CHECK_STR(event->message_id, message);
    CHECK_STR(event->record_id, message);
    CHECK_EQ(event->role, ROLE_TOOL);
    CHECK_STR(event->data_json, "{\"line\": 1}");
    CHECK_EQ(event->previous_session_sequence, 2);
    CHECK_EQ(get_ok(f, session)->last_event_sequence, 3);
    CHECK_EQ(get_ok(f, session)->entry_count, 1);
}

TEST(event_published_wants_a_type_of_its_own)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *wrong[] = {
        "",
        "session.created",
        "session.updated",
        "session.deleted",
        "session.restored",
        "session.purged",
        "session.rewound",
        "totals.updated",
        "message.appended",
        "message.deleted",
        "message.purged",
        "marker.added",
        "memory.remembered",
        "memory.forgotten",
        "todos.replaced",
        "a/b",
        "a b",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CALL_FAILS(f, publish_event, PublishEvent, "INVALID_ARGUMENT", {.type = CHARS(wrong[i])});
        CHECK(strstr(f->status.message, "type"));
    }
    CHECK_EQ(newest_sequence(f), 1);
    publish_ok(f, session, "session.created.by.me");
}

TEST(event_published_names_sessions_that_are_missing_or_closed)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    PublishEventRequest request = {.session_id = UNKNOWN_ID, .type = "mine"};
    CALL_FAILS(f, publish_event, PublishEvent, "SESSION_NOT_FOUND", request);
    request.session_id = "x";
    CALL_FAILS(f, publish_event, PublishEvent, "INVALID_ARGUMENT", request);
    request.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, publish_event, PublishEvent, "SESSION_ARCHIVED", request);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, publish_event, PublishEvent, "SESSION_DELETED", request);
}

TEST(event_published_data_is_limited_and_json)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    PublishEventRequest request = {.type = "mine", .data_json = "{"};
    CALL_FAILS(f, publish_event, PublishEvent, "INVALID_JSON", request);
    CHECK(strstr(f->status.message, "data_json"));
    request.data_json = json_of_size(EVENT_DATA_JSON_BYTES_MAX + 1);
    CALL_FAILS(f, publish_event, PublishEvent, "TOO_LONG", request);
    free(request.data_json);
    request.data_json = json_of_size(EVENT_DATA_JSON_BYTES_MAX);
    CALL_OK(f, publish_event, PublishEvent, request);
    CHECK_STR(events_after(f, 0)->events[0]->data_json, request.data_json);
    free(request.data_json);
}

TEST(event_published_again_with_its_operation_id_is_published_once)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    PublishEventRequest request = {.type = "mine"};
    PublishEventResponse *first = CALL_OK_WITH(f, "op", publish_event, PublishEvent, request);
    f->now_ms += 1000;
    PublishEventResponse *again = CALL_OK_WITH(f, "op", publish_event, PublishEvent, request);
    CHECK_EQ(again->sequence, first->sequence);
    CHECK_EQ(again->created_at, first->created_at);
    CHECK_STR(again->instance_id, first->instance_id);
    CHECK_EQ(newest_sequence(f), 1);
    request.type = "other";
    CALL_FAILS_WITH(f, "op", publish_event, PublishEvent, "OPERATION_ID_REUSED", request);
}

// A call of ListEvents on a thread of its own. Its first look at the events, which is told by the
// storage seam, finds nothing: from then on only news can end it in time.
typedef struct Waiting {
    Fixture *f;
    pthread_t thread;
    sem_t looked;
    int is_armed;
    const char *session;
    uint32_t wait_ms;
    ListEventsResponse *response;
} Waiting;

static Error waiting_seam(void *context, KvOperation operation, KvTable table)
{
    Waiting *waiting = context;
    if (operation != KV_SEEK || table != TABLE_EVENTS) return ERROR_NONE;
    if (__atomic_exchange_n(&waiting->is_armed, 0, __ATOMIC_RELAXED)) sem_post(&waiting->looked);
    return ERROR_NONE;
}

static void *waiting_main(void *context)
{
    Waiting *waiting = context;
    ListEventsRequest request = {
        .session_id = CHARS(waiting->session),
        .after_sequence = 1,
        .wait_ms = waiting->wait_ms,
    };
    request.base.descriptor = &list_events_request__descriptor;
    fixture_fill(&request.base);
    CHECK_EQ(tine_list_events(waiting->f->tine, NULL, &request, &waiting->response), STATUS_OK);
    return NULL;
}

static void waiting_begin(Waiting *waiting, Fixture *f, const char *session)
{
    *waiting = (Waiting){.f = f, .session = session, .wait_ms = WAIT_MS_MAX, .is_armed = 1};
    sem_init(&waiting->looked, 0, 0);
    f->options.store.seam = (KvSeam){waiting_seam, waiting};
    fixture_reopen(f);
    CHECK_EQ(pthread_create(&waiting->thread, NULL, waiting_main, waiting), 0);
    CHECK_EQ(sem_wait(&waiting->looked), 0);
}

static ListEventsResponse *waiting_end(Waiting *waiting)
{
    CHECK_EQ(pthread_join(waiting->thread, NULL), 0);
    sem_destroy(&waiting->looked);
    fixture_keep(waiting->f, &waiting->response->base);
    return waiting->response;
}

TEST(event_listing_waits_for_news)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Waiting waiting;
    waiting_begin(&waiting, f, "");
    publish_ok(f, "", "news");
    ListEventsResponse *page = waiting_end(&waiting);
    CHECK_EQ(page->n_events, 1);
    CHECK_STR(page->events[0]->type, "news");
    CHECK_EQ(page->next_after_sequence, 2);
}

TEST(event_listing_waits_on_for_news_of_its_session)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Waiting waiting;
    waiting_begin(&waiting, f, session);
    publish_ok(f, "", "of.nobody");
    publish_ok(f, session, "of.the.session");
    ListEventsResponse *page = waiting_end(&waiting);
    CHECK_EQ(page->n_events, 1);
    CHECK_STR(page->events[0]->type, "of.the.session");
}

TEST(event_listing_that_waits_in_vain_is_empty)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ListEventsResponse *page =
        CALL_OK(f, list_events, ListEvents, {.after_sequence = 1, .wait_ms = 1});
    CHECK_EQ(page->n_events, 0);
    CHECK_EQ(page->next_after_sequence, 1);
    CHECK(!page->more);
    page = CALL_OK(f, list_events, ListEvents, {.wait_ms = WAIT_MS_MAX});
    CHECK_EQ(page->n_events, 1);
}

// Calls that wait without a thread each: submitted to the engine itself.
typedef struct Parked {
    Rpc call;
    sem_t *done;
} Parked;

static void parked_done(Rpc *call)
{
    sem_post(((Parked *)call->context)->done);
}

static Parked *park(Fixture *f, sem_t *done)
{
    ListEventsRequest request = {.after_sequence = 1, .wait_ms = WAIT_MS_MAX};
    Raw *body = raw_of(f, &list_events_request__descriptor, &request.base);
    Raw *envelope = raw_request(f, "ListEvents", NULL, body);
    Parked *parked = fixture_alloc(f, sizeof(Parked));
    parked->done = done;
    rpc_init(&parked->call);
    rpc_reset(&parked->call);
    parked->call.request = slice(envelope->bytes, envelope->size);
    parked->call.on_done = parked_done;
    parked->call.context = parked;
    engine_submit(f->engine, &parked->call);
    return parked;
}

TEST(event_listing_past_the_limit_of_waiting_calls_is_empty_at_once)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    sem_t done, news;
    sem_init(&done, 0, 0);
    sem_init(&news, 0, 0);
    Parked *parked[WAITING_CALLS_MAX];
    for (size_t i = 0; i < WAITING_CALLS_MAX; i++)
        parked[i] = park(f, &news);
    Parked *refused = park(f, &done);
    CHECK_EQ(sem_wait(&done), 0);
    CHECK_EQ(refused->call.error, ERROR_NONE);
    CHECK_EQ(sem_trywait(&news), -1);
    publish_ok(f, "", "news");
    for (size_t i = 0; i < WAITING_CALLS_MAX; i++)
        CHECK_EQ(sem_wait(&news), 0);
    for (size_t i = 0; i < WAITING_CALLS_MAX; i++) {
        CHECK_EQ(parked[i]->call.error, ERROR_NONE);
        CHECK(buffer_size(&parked[i]->call.reply) > buffer_size(&refused->call.reply));
        rpc_free(&parked[i]->call);
    }
    rpc_free(&refused->call);
    sem_destroy(&done);
    sem_destroy(&news);
}
