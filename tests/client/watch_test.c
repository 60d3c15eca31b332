// Watching: each event once and in order, from where it was asked, over lost servers too.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"
#include "tined.h"
#include "watch_steps.h"

static void publish_ok(Tine *tine, const char *type)
{
    uint64_t sequence;
    CHECK_EQ(publish(tine, NULL, type, &sequence), 0);
}

TEST(watch_sees_what_happens_from_now_on)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    publish_ok(tine, "before");
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    next_is_none(watch, 0);
    publish_ok(tine, "one");
    publish_ok(tine, "two");
    next_is(watch, 2, "one");
    next_is(watch, 3, "two");
    next_is_none(watch, 10);
    publish_ok(tine, "three");
    next_is(watch, 4, "three");
}

TEST(watch_begins_where_it_is_told_to)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    for (int i = 0; i < 5; i++)
        publish_ok(tine, "t");
    CLEANUP(watch_closep)
    TineWatch *oldest = watch_ok(tine, (TineWatchOptions){.start = TINE_WATCH_OLDEST});
    next_is(oldest, 1, "t");
    CLEANUP(watch_closep)
    TineWatch *after =
        watch_ok(tine, (TineWatchOptions){.start = TINE_WATCH_AFTER,
                                          .after_sequence = 3,
                                          .instance_id = tine_watch_instance_id(oldest)});
    next_is(after, 4, "t");
    CHECK_EQ(tine_watch_sequence(after), 4);
    next_is(after, 5, "t");
    next_is_none(after, 0);
}

TEST(watch_of_another_store_is_out_of_range)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    publish_ok(tine, "t");
    TineWatch *watch = NULL;
    TineStatus status;
    TineWatchOptions options = {.start = TINE_WATCH_AFTER, .after_sequence = 2};
    CHECK_EQ(tine_watch(tine, &options, &status, &watch), STATUS_OUT_OF_RANGE);
    CHECK_STR(status.reason, "STORE_CHANGED");
    options.after_sequence = 1;
    options.instance_id = "00000000000000000000000001";
    CHECK_EQ(tine_watch(tine, &options, &status, &watch), STATUS_OUT_OF_RANGE);
    CHECK_STR(status.reason, "STORE_CHANGED");
    options.session_id = "00000000000000000000000001";
    options.instance_id = NULL;
    CHECK_EQ(tine_watch(tine, &options, &status, &watch), STATUS_NOT_FOUND);
    CHECK(watch == NULL);
}

TEST(watch_may_be_of_one_session_and_of_some_types)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id mine = session_new(tine), other = session_new(tine);
    CLEANUP(watch_closep)
    TineWatch *session = watch_ok(tine, (TineWatchOptions){.session_id = mine.text});
    CLEANUP(watch_closep)
    TineWatch *types = watch_ok(tine, (TineWatchOptions){.type_prefix = "message."});
    append_text(tine, other.text, "x");
    publish_ok(tine, "t");
    append_text(tine, mine.text, "x");
    next_is(session, 5, "message.appended");
    next_is_none(session, 0);
    next_is(types, 3, "message.appended");
    next_is(types, 5, "message.appended");
    next_is_none(types, 0);
}

// Kept events and broadcasts, as one agent sends them, come in that order.
static void watch_a_stream(Tine *writer, Tine *reader)
{
    Id session = session_new(writer);
    CLEANUP(watch_closep)
    TineWatch *watch = watch_ok(reader, (TineWatchOptions){.session_id = session.text});
    uint64_t sequence = tine_watch_sequence(watch);
    for (int i = 0; i < 50; i++) {
        append_text(writer, session.text, "x");
        broadcast_in(writer, session.text, "delta", "{\"text\":\"y\"}");
        publish_in(writer, NULL, "other");
        broadcast_in(writer, NULL, "delta", NULL);
        publish_in(writer, session.text, "done");
    }
    for (uint64_t i = 0; i < 50; i++) {
        next_is(watch, sequence + 3 * i + 1, "message.appended");
        next_is(watch, 0, "delta");
        next_is(watch, sequence + 3 * i + 3, "done");
    }
}

TEST(watch_gets_broadcasts_in_order_with_the_writes_before_them)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    watch_a_stream(tine, tine);
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *writer = open_ok(tined.url);
    CLEANUP(closep) Tine *reader = open_ok(tined.url);
    watch_a_stream(writer, reader);
}
