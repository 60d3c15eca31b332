// Watching a real tined: bursts, pauses, deaths, what is no longer kept, and another store.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"
#include "tined.h"
#include "watch_steps.h"

// Many threads that publish at once, so that commits are shared.
typedef struct Publishers {
    Tine *tine;
    const char *session; // NULL: none
    unsigned threads;
    size_t each; // events of each thread
    pthread_t starter;
} Publishers;

static void publish_often(const Worker *worker)
{
    const Publishers *publishers = worker->context;
    for (size_t i = 0; i < publishers->each; i++)
        publish_in(publishers->tine, publishers->session, "t");
}

static void *publish_in_threads(void *context)
{
    const Publishers *publishers = context;
    in_threads(publishers->threads, publish_often, context);
    return NULL;
}

static void publishers_start(Publishers *publishers)
{
    CHECK_EQ(pthread_create(&publishers->starter, NULL, publish_in_threads, publishers), 0);
}

static void publishers_wait(const Publishers *publishers)
{
    CHECK_EQ(pthread_join(publishers->starter, NULL), 0);
}

static void next_are(TineWatch *watch, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        next_is(watch, first + i, "t");
}

// Watches while others publish; their last event ends it.
static void watch_while_publishing(const Tined *tined, const char *watch_url)
{
    CLEANUP(closep) Tine *publisher = open_ok(tined->url);
    CLEANUP(closep) Tine *watcher = open_with(watch_url, (TineOpenOptions){.token = TINED_TOKEN});
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(watcher, (TineWatchOptions){.start = 0});
    uint64_t first = tine_watch_sequence(watch) + 1;
    Publishers publishers = {.tine = publisher, .threads = 4, .each = test_scaled(200)};
    publishers_start(&publishers);
    next_are(watch, first, publishers.threads * publishers.each);
    publishers_wait(&publishers);
    next_is_none(watch, 0);
}

TEST(watch_loses_nothing_of_what_many_write)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    watch_while_publishing(&tined, tined.url);
    watch_while_publishing(&tined, tined.nng_url);
    watch_while_publishing(&tined, tined.tcp_url);
}

TEST(watch_gets_a_burst_whole)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    Publishers publishers = {.tine = tine, .threads = 50, .each = 40}; // 2000
    publishers_start(&publishers);
    next_are(watch, 1, 2000);
    publishers_wait(&publishers);
    next_is_none(watch, 0);
}

TEST(watch_catches_up_after_a_pause)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    Id session = session_new(tine); // event 1
    CLEANUP(watch_closep) TineWatch *all = watch_ok(tine, (TineWatchOptions){.start = 0});
    CLEANUP(watch_closep)
    TineWatch *one = watch_ok(tine, (TineWatchOptions){.session_id = session.text});
    Publishers publishers = {
        .tine = tine, .session = session.text, .threads = 50, .each = test_scaled(400)};
    size_t count = publishers.threads * publishers.each; // 20 000: more than any queue holds
    publishers_start(&publishers);
    publishers_wait(&publishers);
    next_are(all, 2, count);
    next_are(one, 2, count);
    publish_in(tine, session.text, "after");
    next_is(all, count + 2, "after");
    next_is(one, count + 2, "after");
    broadcast_in(tine, session.text, "live", NULL); // both listen again
    next_is(all, 0, "live");
    next_is(one, 0, "live");
}

static void watch_over_ends(void end(Tined *tined))
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    Publishers publishers = {.tine = tine, .threads = 8, .each = test_scaled(200)};
    size_t count = publishers.threads * publishers.each, quarter = count / 4;
    publishers_start(&publishers);
    for (size_t i = 0; i < 3; i++) {
        next_are(watch, 1 + i * quarter, quarter);
        end(&tined);
        tined_start(&tined);
    }
    next_are(watch, 1 + 3 * quarter, count - 3 * quarter);
    publishers_wait(&publishers);
    next_is_none(watch, 0);
    publish_in(tine, NULL, "after");
    next_is(watch, count + 1, "after");
    // On the bus again: nobody lists a broadcast. One that comes too early is lost.
    char type[64] = "";
    do {
        broadcast_in(tine, NULL, "live", NULL);
        Tine__V1__Event *event = NULL;
        CHECK_EQ(tine_watch_next(watch, 100, NULL, &event), 0);
        if (!event) continue;
        snprintf(type, sizeof(type), "%s", event->type);
        tine__v1__event__free_unpacked(event, NULL);
    } while (!*type);
    CHECK_STR(type, "live");
}

TEST(watch_goes_on_over_killed_servers)
{
    watch_over_ends(tined_kill);
}

TEST(watch_goes_on_over_stopped_servers)
{
    watch_over_ends(tined_stop);
}

static void next_is_out_of_range(TineWatch *watch, const char *reason)
{
    Tine__V1__Event *event = (Tine__V1__Event *)(uintptr_t)1;
    TineStatus status;
    CHECK_EQ(tine_watch_next(watch, HARNESS_PATIENCE_MS, &status, &event), STATUS_OUT_OF_RANGE);
    CHECK(event == (Tine__V1__Event *)(uintptr_t)1);
    CHECK_STR(status.reason, reason);
}

TEST(watch_past_what_is_kept_is_out_of_range_and_a_new_one_goes_on)
{
    CLEANUP(tined_end) Tined tined = {.events_max = "100"};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    publish_in(tine, NULL, "t");
    next_is(watch, 1, "t");
    tined_stop(&tined); // what the bus held back for the watch is gone with it
    tined_start(&tined);
    for (size_t i = 0; i < 300; i++)
        publish_in(tine, NULL, "t");
    next_is_out_of_range(watch, "EVENTS_GONE");
    next_is_out_of_range(watch, "EVENTS_GONE");
    TineWatchOptions there = {.start = TINE_WATCH_AFTER,
                              .after_sequence = tine_watch_sequence(watch),
                              .instance_id = tine_watch_instance_id(watch)};
    TineWatch *none = NULL;
    TineStatus status;
    CHECK_EQ(tine_watch(tine, &there, &status, &none), STATUS_OUT_OF_RANGE);
    CHECK_STR(status.reason, "EVENTS_GONE");
    CHECK(none == NULL);

    CLEANUP(watch_closep) TineWatch *fresh = watch_ok(tine, (TineWatchOptions){.start = 0});
    publish_in(tine, NULL, "t");
    next_is(fresh, 302, "t");
    CLEANUP(watch_closep)
    TineWatch *oldest = watch_ok(tine, (TineWatchOptions){.start = TINE_WATCH_OLDEST});
    next_are(oldest, 203, 100);
}

TEST(watch_of_a_store_that_was_replaced_is_out_of_range)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    CLEANUP(watch_closep) TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = 0});
    publish_in(tine, NULL, "t");
    next_is(watch, 1, "t");
    tined_stop(&tined);
    snprintf(tined.data, sizeof(tined.data), "%s/other", test_dir());
    tined_start(&tined);
    for (size_t i = 0; i < 3; i++)
        publish_in(tine, NULL, "t");
    next_is_out_of_range(watch, "STORE_CHANGED");
    CLEANUP(watch_closep) TineWatch *fresh = watch_ok(tine, (TineWatchOptions){.start = 0});
    publish_in(tine, NULL, "t");
    next_is(fresh, 4, "t");
}

TEST(watch_of_a_purged_session_ends)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    const char *urls[] = {tined.url, tined.nng_url, "embedded::memory:"};
    for (size_t i = 0; i < 3; i++) {
        CLEANUP(closep) Tine *tine = open_ok(urls[i]);
        Id session = session_new(tine);
        CLEANUP(watch_closep)
        TineWatch *watch = watch_ok(tine, (TineWatchOptions){.session_id = session.text});
        append_text(tine, session.text, "m1");
        char type[64];
        (void)next_ok(watch, type);
        CHECK_STR(type, "message.appended");
        purge(tine, session.text);
        Tine__V1__Event *event = NULL;
        TineStatus status;
        CHECK_EQ(tine_watch_next(watch, HARNESS_PATIENCE_MS, &status, &event), STATUS_NOT_FOUND);
        CHECK_STR(status.reason, "SESSION_NOT_FOUND");
    }
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
    publish_in(tine, NULL, "one");
    next_is(watch, 1, "one");
}
