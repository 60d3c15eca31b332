// Watching: each event once and in order, from where it was asked, over lost servers too.

#include <pthread.h>
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

enum { PUBLISHERS = 4 };

static void publish_often(const Worker *worker)
{
    for (size_t i = 0; i < test_scaled(200); i++)
        publish_ok(worker->context, "t");
}

static void *publish_in_threads(void *tine)
{
    in_threads(PUBLISHERS, publish_often, tine);
    return NULL;
}

// Watches while others publish; their last event ends it.
static void watch_while_publishing(const char *watch_url, const char *publish_url,
                                   const char *token)
{
    CLEANUP(closep) Tine *publisher = open_ok(publish_url);
    CLEANUP(closep)
    Tine *watcher = watch_url == publish_url
                        ? open_ok(watch_url)
                        : open_with(watch_url, (TineOpenOptions){.token = token});
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(watcher, (TineWatchOptions){.start = 0});
    uint64_t first = tine_watch_sequence(watch) + 1;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, publish_in_threads, publisher), 0);
    for (uint64_t i = 0; i < PUBLISHERS * test_scaled(200); i++)
        next_is(watch, first + i, "t");
    CHECK_EQ(pthread_join(thread, NULL), 0);
    next_is_none(watch, 0);
}

TEST(watch_loses_nothing_of_what_many_write)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    watch_while_publishing(tined.url, tined.url, NULL);
    watch_while_publishing(tined.nng_url, tined.url, NULL);
    watch_while_publishing(tined.tcp_url, tined.url, TINED_TOKEN);
}

static void *next_in_thread(void *watch)
{
    next_is(watch, 3, "after");
    next_is(watch, 4, "later");
    return NULL;
}

TEST(watch_goes_on_over_a_killed_server)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    publish_ok(tine, "one");
    publish_ok(tine, "two");
    next_is(watch, 1, "one");
    tined_kill(&tined);
    next_is(watch, 2, "two"); // it was here already
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, next_in_thread, watch), 0);
    tined_start(&tined);
    publish_ok(tine, "after");
    tined_stop(&tined);
    tined_start(&tined);
    publish_ok(tine, "later");
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(watch_tells_when_there_is_no_server_and_goes_on_later)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    tined_kill(&tined);
    Tine__V1__Event *event = (Tine__V1__Event *)(uintptr_t)1;
    TineStatus status;
    CHECK_EQ(tine_watch_next(watch, 0, &status, &event), STATUS_UNAVAILABLE);
    CHECK(event == (Tine__V1__Event *)(uintptr_t)1);
    CHECK_STR(status.reason, "UNAVAILABLE");
    tined_start(&tined);
    publish_ok(tine, "one");
    next_is(watch, 1, "one");
}
