// Watching a bus that does what it may do, and what it may not: the watch gives out each kept
// event once and in order, and asks the server only when it must.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "client.h"
#include "hand_store.h"
#include "os/random.h"
#include "steps.h"
#include "watch_steps.h"

enum { CHAOS_STEPS = 3000 };

static const char MINE[] = "01SESSION0000000000000MINE";
static const char OTHER[] = "01SESSION000000000000OTHER";

// A store by hand, a client of it, and a watch that has heard the bus.
typedef struct Scene {
    HandStore *store;
    Tine *tine;
    TineWatch *watch;
} Scene;

static Scene scene_begin(TineWatchOptions options)
{
    Scene scene = {.store = hand_open()};
    scene.tine = open_ok(hand_url(scene.store));
    scene.tine->bus_retry_ms = 0; // so that it is mostly the bus that is watched
    scene.watch = watch_ok(scene.tine, options);
    hand_wait_subscribers(scene.store, 1);
    return scene;
}

static void scene_end(Scene *scene)
{
    tine_watch_close(scene->watch);
    tine_close(scene->tine);
    hand_close(&scene->store);
}

TEST(the_bus_brings_events_and_nobody_is_asked)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    unsigned lists = hand_lists(scene.store);
    for (uint64_t i = 1; i <= 100; i++) // what a socket holds
        CHECK_EQ(hand_keep_and_tell(scene.store, NULL, "t"), i);
    for (uint64_t i = 1; i <= 100; i++)
        next_is(scene.watch, i, "t");
    hand_heartbeat(scene.store, 100);
    next_is_none(scene.watch, 20);
    CHECK_EQ(tine_watch_sequence(scene.watch), 100);
    CHECK_EQ(hand_lists(scene.store), lists);
}

TEST(a_gap_is_listed_and_doubles_are_dropped)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    unsigned lists = hand_lists(scene.store);
    hand_keep_and_tell(scene.store, NULL, "one");
    for (int i = 0; i < 3; i++)
        hand_keep(scene.store, NULL, "lost");
    hand_keep_and_tell(scene.store, NULL, "five");
    hand_tell(scene.store, 3);
    hand_tell(scene.store, 5);
    hand_keep_and_tell(scene.store, NULL, "six");
    hand_tell(scene.store, 1);
    next_is(scene.watch, 1, "one");
    for (uint64_t i = 2; i <= 4; i++)
        next_is(scene.watch, i, "lost");
    next_is(scene.watch, 5, "five");
    next_is(scene.watch, 6, "six");
    next_is_none(scene.watch, 20);
    CHECK_EQ(hand_lists(scene.store), lists + 1);
}

TEST(a_heartbeat_tells_of_the_last_loss)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_keep_and_tell(scene.store, NULL, "one");
    hand_keep(scene.store, NULL, "lost");
    next_is(scene.watch, 1, "one");
    next_is_none(scene.watch, 5);
    hand_heartbeat(scene.store, 1); // sent before, and late
    next_is_none(scene.watch, 5);
    hand_heartbeat(scene.store, 2);
    next_is(scene.watch, 2, "lost");
}

TEST(broadcasts_come_in_between_and_move_nothing)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_keep_and_tell(scene.store, NULL, "one");
    hand_broadcast(scene.store, MINE, "delta");
    hand_keep_and_tell(scene.store, NULL, "two");
    hand_broadcast(scene.store, NULL, "progress");
    next_is(scene.watch, 1, "one");
    next_is(scene.watch, 0, "delta");
    CHECK_EQ(tine_watch_sequence(scene.watch), 1);
    next_is(scene.watch, 2, "two");
    next_is(scene.watch, 0, "progress");
    next_is_none(scene.watch, 0);
}

TEST(a_session_is_watched_among_others)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.session_id = MINE});
    unsigned lists = hand_lists(scene.store);
    hand_keep_and_tell(scene.store, NULL, "global");
    hand_keep_and_tell(scene.store, MINE, "m1");
    next_is(scene.watch, 2, "m1");
    hand_keep_and_tell(scene.store, OTHER, "o1");
    hand_broadcast(scene.store, OTHER, "delta");
    hand_keep(scene.store, OTHER, "lost, but not mine");
    hand_keep_and_tell(scene.store, MINE, "m2");
    hand_broadcast(scene.store, MINE, "delta");
    next_is(scene.watch, 5, "m2");
    next_is(scene.watch, 0, "delta");
    CHECK_EQ(hand_lists(scene.store), lists);
    hand_keep(scene.store, MINE, "m3");
    hand_keep_and_tell(scene.store, MINE, "m4");
    next_is(scene.watch, 6, "m3");
    next_is(scene.watch, 7, "m4");
    CHECK_EQ(hand_lists(scene.store), lists + 1);
    // Others' events move the position: a heartbeat finds nothing missing.
    hand_keep_and_tell(scene.store, OTHER, "o2");
    hand_heartbeat(scene.store, 8);
    next_is_none(scene.watch, 20);
    CHECK_EQ(tine_watch_sequence(scene.watch), 8);
    CHECK_EQ(hand_lists(scene.store), lists + 1);
}

TEST(types_are_picked_and_the_rest_still_counts)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.type_prefix = "message."});
    unsigned lists = hand_lists(scene.store);
    hand_keep_and_tell(scene.store, NULL, "message.appended");
    hand_keep_and_tell(scene.store, NULL, "todos.replaced");
    hand_broadcast(scene.store, NULL, "mess");
    hand_broadcast(scene.store, NULL, "message.delta");
    hand_keep_and_tell(scene.store, NULL, "message.purged");
    next_is(scene.watch, 1, "message.appended");
    next_is(scene.watch, 0, "message.delta");
    next_is(scene.watch, 3, "message.purged");
    CHECK_EQ(hand_lists(scene.store), lists);
}

TEST(a_lost_bus_is_found_again_and_nothing_is_missing)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    uint64_t next = 1;
    for (unsigned round = 1; round <= 4; round++) {
        hand_keep_and_tell(scene.store, NULL, "told");
        hand_cut(scene.store);
        hand_keep(scene.store, NULL, "while it was gone");
        next_is(scene.watch, next++, "told");
        next_is(scene.watch, next++, "while it was gone");
        // The broadcast shows that the bus is heard again: nobody lists it.
        while (hand_subscribers(scene.store) == round)
            next_is_none(scene.watch, 1);
        hand_wait_subscribers(scene.store, round + 1);
        hand_broadcast(scene.store, NULL, "heard");
        next_is(scene.watch, 0, "heard");
    }
}

static void say_nothing(WireConnection *connection)
{
    uint8_t hello[8];
    if (wire_receive(connection, hello, 8)) wire_expect_end(connection);
}

static void say_hello_only(WireConnection *connection)
{
    if (wire_hello_pub(connection)) wire_expect_end(connection);
}

static void hang_up(WireConnection *connection)
{
    (void)connection;
}

static void say_another_hello(WireConnection *connection)
{
    uint8_t hello[8];
    wire_send(connection, "\0SP\0\0\x31\0\0", 8);
    if (wire_receive(connection, hello, 8)) wire_expect_end(connection);
}

static void say_half_a_hello(WireConnection *connection)
{
    wire_send(connection, "\0SP\0\0", 5);
}

static void say(WireConnection *connection, const char *bytes, size_t size)
{
    if (!wire_hello_pub(connection)) return;
    wire_send(connection, bytes, size);
    wire_expect_end(connection);
}

static void send_another_frame(WireConnection *connection)
{
    say(connection, "\2\0\0\0\0\0\0\0\1x", 10);
}

static void send_a_length_without_end(WireConnection *connection)
{
    say(connection, "\1\xff\xff\xff\xff\xff\xff\xff\xff", 9);
}

static void send_an_empty_message(WireConnection *connection)
{
    say(connection, "\1\0\0\0\0\0\0\0\0", 9);
}

static void send_a_message_without_topic(WireConnection *connection)
{
    say(connection, "\1\0\0\0\0\0\0\0\4quux", 13);
}

static void send_a_message_that_is_no_event(WireConnection *connection)
{
    say(connection, "\1\0\0\0\0\0\0\0\4t\0\xff\xff", 13);
}

static void send_half_a_message(WireConnection *connection)
{
    if (wire_hello_pub(connection)) wire_send(connection, "\1\0\0\0\0\0\0\0\x40global/t\0", 18);
}

// Watches while the bus greets everybody so; each event must come, and the bus must be heard as
// soon as it behaves.
static void watch_beside(HandGreeting greeting)
{
    HandStore *store = hand_open();
    hand_greet_with(store, greeting);
    Tine *tine = open_ok(hand_url(store));
    tine->bus_silence_ms = 30;
    TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = TINE_WATCH_NEW});
    for (uint64_t i = 1; i <= 20; i++) {
        hand_keep(store, NULL, "t");
        next_is(watch, i, "t");
    }
    unsigned before = hand_subscribers(store);
    hand_greet_with(store, NULL);
    uint64_t next = 21;
    while (hand_subscribers(store) <= before) { // one of the old kind may be in between
        next_is_none(watch, 1); // the store keeps a few thousand events, and the back-off is long
        hand_keep(store, NULL, "t");
        next_is(watch, next++, "t");
    }
    hand_cut(store);
    hand_keep_and_tell(store, NULL, "t");
    next_is(watch, next, "t");
    tine_watch_close(watch);
    tine_close(tine);
    hand_close(&store);
}

TEST(a_bus_that_says_nothing_is_not_waited_for)
{
    watch_beside(say_nothing);
}

TEST(a_bus_that_says_hello_only_is_not_relied_on)
{
    watch_beside(say_hello_only);
}

TEST(a_bus_that_hangs_up_is_not_relied_on)
{
    watch_beside(hang_up);
}

TEST(what_is_no_bus_is_not_listened_to)
{
    watch_beside(say_another_hello);
}

TEST(half_a_hello_is_none)
{
    watch_beside(say_half_a_hello);
}

TEST(frames_that_are_none_end_the_subscription)
{
    watch_beside(send_another_frame);
    watch_beside(send_a_length_without_end);
}

TEST(messages_that_are_none_end_the_subscription)
{
    watch_beside(send_an_empty_message);
    watch_beside(send_a_message_without_topic);
    watch_beside(send_a_message_that_is_no_event);
    watch_beside(send_half_a_message);
}

TEST(a_bus_of_another_store_is_left)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_tell_lie(scene.store, "01ANOTHERSTORE000000000000", 1);
    while (hand_subscribers(scene.store) == 1) // left, and tried again
        next_is_none(scene.watch, 1);
    hand_keep_and_tell(scene.store, NULL, "true");
    next_is(scene.watch, 1, "true");
    hand_keep_and_tell(scene.store, NULL, "true");
    next_is(scene.watch, 2, "true");
}

TEST(a_bus_that_tells_of_what_the_store_does_not_have_is_left)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_tell_lie(scene.store, NULL, 1000);
    while (hand_subscribers(scene.store) == 1)
        next_is_none(scene.watch, 1);
    hand_keep_and_tell(scene.store, NULL, "true");
    next_is(scene.watch, 1, "true");
    CHECK_EQ(tine_watch_sequence(scene.watch), 1);
}

TEST(a_bus_that_went_silent_is_given_up)
{
    HandStore *store = hand_open();
    Tine *tine = open_ok(hand_url(store));
    tine->bus_silence_ms = 20;
    TineWatch *watch = watch_ok(tine, (TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_keep(store, NULL, "untold"); // and no heartbeat either
    next_is(watch, 1, "untold");
    tine_watch_close(watch);
    tine_close(tine);
    hand_close(&store);
}

TEST(messages_come_byte_by_byte)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    unsigned lists = hand_lists(scene.store);
    hand_keep(scene.store, NULL, "t");
    static const char EVENT[] = "\1\0\0\0\0\0\0\0\x2aglobal/t\0\x08\1\x1a\x1a"
                                "01HANDSTORE000000000000000\x2a\1t";
    for (size_t i = 0; i < 9 + 0x2a; i++) {
        hand_send(scene.store, slice(EVENT + i, 1));
        if (i == 20) next_is_none(scene.watch, 1);
    }
    next_is(scene.watch, 1, "t");
    CHECK_EQ(hand_lists(scene.store), lists);
}

// A random bus: what it tells comes late, twice, not at all, out of order, with lies and rubbish in
// between, over connections that end. What was kept must come out, each once and in order.
typedef struct Chaos {
    Scene scene;
    Random random;
    const char *session;          // that is watched; NULL: all
    uint64_t wanted[CHAOS_STEPS]; // the sequences that must come
    size_t wanted_count, seen_count;
    uint64_t newest;
} Chaos;

static void chaos_keep(Chaos *chaos)
{
    const char *sessions[] = {NULL, MINE, OTHER};
    const char *session = sessions[random_below(&chaos->random, 3)];
    chaos->newest = hand_keep(chaos->scene.store, session, "t");
    if (!chaos->session || session == chaos->session) {
        chaos->wanted[chaos->wanted_count++] = chaos->newest;
    }
    if (random_below(&chaos->random, 4) > 0) hand_tell(chaos->scene.store, chaos->newest);
}

static void chaos_disturb(Chaos *chaos)
{
    HandStore *store = chaos->scene.store;
    uint64_t newest = chaos->newest;
    switch (random_below(&chaos->random, 8)) {
    case 0: hand_cut(store); break;
    case 1: hand_send(store, slice("\1\0\0\0\0\0\0\0\4quux", 13)); break;
    case 2: hand_tell_lie(store, NULL, newest + 1000); break;
    case 3: hand_tell_lie(store, "01ANOTHERSTORE000000000000", newest); break;
    case 4: hand_broadcast(store, random_below(&chaos->random, 2) ? MINE : NULL, "delta"); break;
    case 5: hand_heartbeat(store, newest); break;
    default:
        if (newest > 0) hand_tell(store, 1 + random_below(&chaos->random, newest));
    }
}

// Takes what is there. Without waiting, so what was told a moment ago may come the next time.
static void chaos_take(Chaos *chaos, int64_t timeout_ms)
{
    for (;;) {
        Tine__V1__Event *event = NULL;
        CHECK_EQ(tine_watch_next(chaos->scene.watch, timeout_ms, NULL, &event), 0);
        if (!event) return;
        if (event->sequence > 0) {
            CHECK(chaos->seen_count < chaos->wanted_count);
            CHECK_EQ(event->sequence, chaos->wanted[chaos->seen_count]);
            chaos->seen_count++;
        } else {
            CHECK_STR(event->type, "delta");
        }
        tine__v1__event__free_unpacked(event, NULL);
        if (chaos->seen_count == chaos->wanted_count) timeout_ms = 0;
    }
}

static void watch_chaos(const char *session)
{
    Chaos *chaos = calloc(1, sizeof(Chaos));
    CHECK(chaos != NULL);
    random_seed(&chaos->random, test_seed());
    chaos->session = session;
    chaos->scene = scene_begin((TineWatchOptions){.session_id = session});
    for (size_t i = 0; i < test_scaled(CHAOS_STEPS); i++) {
        uint64_t choice = random_below(&chaos->random, 32);
        if (choice < 24) {
            chaos_keep(chaos);
        } else if (choice < 26) {
            chaos_disturb(chaos);
        } else {
            chaos_take(chaos, 0);
        }
    }
    while (chaos->seen_count < chaos->wanted_count) {
        hand_heartbeat(chaos->scene.store, chaos->newest);
        chaos_take(chaos, 100);
    }
    scene_end(&chaos->scene);
    free(chaos);
}

TEST(over_a_random_bus_nothing_is_missing_and_nothing_comes_twice)
{
    watch_chaos(NULL);
}

TEST(over_a_random_bus_no_event_of_a_session_is_missing_or_comes_twice)
{
    watch_chaos(MINE);
}

TEST(a_child_of_fork_watches_on_its_own)
{
    CLEANUP(scene_end) Scene scene = scene_begin((TineWatchOptions){.start = TINE_WATCH_NEW});
    hand_keep_and_tell(scene.store, NULL, "one");
    next_is(scene.watch, 1, "one");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        next_is(scene.watch, 2, "two");
        tine_watch_close(scene.watch);
        _exit(0);
    }
    hand_wait_subscribers(scene.store, 2);
    hand_keep_and_tell(scene.store, NULL, "two");
    next_is(scene.watch, 2, "two");
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    hand_keep_and_tell(scene.store, NULL, "three");
    next_is(scene.watch, 3, "three");
}
