// BroadcastEvent: sent to who listens, kept nowhere.

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"
#include "wire/bus_message.h"

typedef struct Listener {
    EventQueue *queue;
    EventBatch batch;
} Listener;

static void listener_close(Listener *listener)
{
    event_queue_close(listener->queue);
    event_batch_free(&listener->batch);
    *listener = (Listener){.queue = NULL};
}

static Listener listen_to(Fixture *f)
{
    Listener listener = {.queue = NULL};
    CHECK_EQ(event_queue_open(engine_events(f->engine), 0, &listener.queue), ERROR_NONE);
    return listener;
}

// The next event, which must be there: a call's are, when it has been answered.
static Event *heard(Fixture *f, Listener *listener, const char *topic)
{
    HubEvent next;
    if (!event_batch_next(&listener->batch, &next)) {
        CHECK(event_queue_take(listener->queue, 0, &listener->batch));
        CHECK(event_batch_next(&listener->batch, &next));
    }
    CHECK(slice_equal(next.topic, slice_of(topic)));
    Event *event = (Event *)protobuf_c_message_unpack(&event__descriptor, NULL, next.event.size,
                                                      next.event.bytes);
    CHECK(event != NULL);
    fixture_keep(f, &event->base);
    return event;
}

static void heard_no_more(Listener *listener)
{
    HubEvent next;
    CHECK(!event_batch_next(&listener->batch, &next));
    CHECK(!event_queue_take(listener->queue, 0, &listener->batch));
}

static char *topic_of(Fixture *f, const char *session, const char *type)
{
    char *topic = fixture_alloc(f, BUS_TOPIC_BYTES_MAX);
    snprintf(topic, BUS_TOPIC_BYTES_MAX, "session/%s/%s", session, type);
    return topic;
}

TEST(broadcast_is_heard_with_its_fields_and_not_kept)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CLEANUP(listener_close) Listener listener = listen_to(f);
    BroadcastEventRequest request = {
        .session_id = CHARS(session),
        .type = "text.delta",
        .message_id = "m-1",
        .record_id = "r-1",
        .role = ROLE_ASSISTANT,
        .data_json = "{\"text\": \"Hel\"}",
    };
    BroadcastEventResponse *response =
        CALL_OK_WITH(f, "op-1", broadcast_event, BroadcastEvent, request);
    CHECK_EQ(response->created_at, f->now_ms);
    Event *event = heard(f, &listener, topic_of(f, session, "text.delta"));
    CHECK_EQ(event->sequence, 0);
    CHECK_EQ(event->previous_session_sequence, 0);
    CHECK_STR(event->instance_id, response->instance_id);
    CHECK_STR(event->session_id, session);
    CHECK_STR(event->type, "text.delta");
    CHECK_STR(event->message_id, "m-1");
    CHECK_STR(event->record_id, "r-1");
    CHECK_STR(event->operation_id, "op-1");
    CHECK_EQ(event->role, ROLE_ASSISTANT);
    CHECK_EQ(event->created_at, f->now_ms);
    CHECK_STR(event->data_json, "{\"text\": \"Hel\"}");
    heard_no_more(&listener);

    CHECK_EQ(newest_sequence(f), 1); // the session's creation
    CHECK(!store_holds(f, "text.delta"));
    CHECK(!store_holds(f, "op-1"));
}

TEST(broadcast_without_a_session_is_global)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CLEANUP(listener_close) Listener listener = listen_to(f);
    CALL_OK(f, broadcast_event, BroadcastEvent, {.type = "mine"});
    CHECK_STR(heard(f, &listener, "global/mine")->session_id, "");
    heard_no_more(&listener);
}

TEST(broadcast_that_nobody_hears_is_answered)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CALL_OK(f, broadcast_event, BroadcastEvent, {.type = "mine"});
    CHECK_EQ(newest_sequence(f), 0);
}

TEST(broadcast_comes_behind_the_writes_before_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CLEANUP(listener_close) Listener listener = listen_to(f);
    BroadcastEventRequest request = {.session_id = CHARS(session), .type = "mine"};
    const char *first = append_ok(f, session, ROLE_USER, "1");
    CALL_OK(f, broadcast_event, BroadcastEvent, request);
    const char *second = append_ok(f, session, ROLE_USER, "2");
    char *appended = topic_of(f, session, "message.appended");
    CHECK_STR(heard(f, &listener, appended)->message_id, first);
    heard(f, &listener, topic_of(f, session, "mine"));
    Event *last = heard(f, &listener, appended);
    CHECK_STR(last->message_id, second);
    CHECK_EQ(last->previous_session_sequence, 2); // the broadcast is no link of the chain
    heard_no_more(&listener);
}

TEST(broadcast_wants_a_type_of_its_own)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CLEANUP(listener_close) Listener listener = listen_to(f);
    const char *wrong[] = {"", "session.created", "todos.replaced", "heartbeat", "a/b", "a b"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CALL_FAILS(f, broadcast_event, BroadcastEvent, "INVALID_ARGUMENT",
                   {.type = CHARS(wrong[i])});
        CHECK(strstr(f->status.message, "type"));
    }
    heard_no_more(&listener);
}

TEST(broadcast_names_sessions_that_are_missing_or_closed)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    BroadcastEventRequest request = {.session_id = UNKNOWN_ID, .type = "mine"};
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "SESSION_NOT_FOUND", request);
    request.session_id = "x";
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "INVALID_ARGUMENT", request);
    request.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "SESSION_ARCHIVED", request);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "SESSION_DELETED", request);
    purge_ok(f, session, /* keep_for_forks= */ false);
    CLEANUP(listener_close) Listener listener = listen_to(f);
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "SESSION_NOT_FOUND", request);
    heard_no_more(&listener);
}

TEST(broadcast_data_is_limited_and_json)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CLEANUP(listener_close) Listener listener = listen_to(f);
    BroadcastEventRequest request = {.type = "mine", .data_json = "{"};
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "INVALID_JSON", request);
    CHECK(strstr(f->status.message, "data_json"));
    request.data_json = json_of_size(EVENT_DATA_JSON_BYTES_MAX + 1);
    CALL_FAILS(f, broadcast_event, BroadcastEvent, "TOO_LONG", request);
    free(request.data_json);
    request.data_json = json_of_size(EVENT_DATA_JSON_BYTES_MAX);
    CALL_OK(f, broadcast_event, BroadcastEvent, request);
    CHECK_STR(heard(f, &listener, "global/mine")->data_json, request.data_json);
    free(request.data_json);
    heard_no_more(&listener);
}

TEST(broadcast_again_with_its_operation_id_is_sent_again)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CLEANUP(listener_close) Listener listener = listen_to(f);
    BroadcastEventRequest request = {.type = "mine"};
    CALL_OK_WITH(f, "op", broadcast_event, BroadcastEvent, request);
    CALL_OK_WITH(f, "op", broadcast_event, BroadcastEvent, request);
    CHECK_STR(heard(f, &listener, "global/mine")->operation_id, "op");
    CHECK_STR(heard(f, &listener, "global/mine")->operation_id, "op");

    // Nor does it take the id from another call, or from another request.
    request.type = "other";
    CALL_OK_WITH(f, "op", broadcast_event, BroadcastEvent, request);
    heard(f, &listener, "global/other");
    CALL_OK_WITH(f, "op", publish_event, PublishEvent, {.type = "kept"});
    CHECK_EQ(heard(f, &listener, "global/kept")->sequence, 1);
    CALL_OK_WITH(f, "op", publish_event, PublishEvent, {.type = "kept"});
    heard_no_more(&listener);
    CALL_OK_WITH(f, "op", broadcast_event, BroadcastEvent, request);
    heard(f, &listener, "global/other");
}
