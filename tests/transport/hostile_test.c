// Peers that break off, break the rules, or never read: none of them harms a client that behaves,
// and nothing is left of them: no connection, no descriptor, no memory.

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/random.h"
#include "server.h"

enum {
    SMALL_TEXT_BYTES = 100,
    LARGE_TEXT_BYTES = 300 * 1024,
    SERVED_EVERY = 10, // hostile peers between two calls of the good client
    MEMORY_SLACK_BYTES = 8 * 1024 * 1024,
};

// A server, a client that behaves and stays connected, and what is in use then.
typedef struct Scene {
    Server server;
    Sp good;
    size_t descriptors, memory_bytes;
    IdText session, small, large; // messages
} Scene;

// Memory of this process without files, as the kernel counts it, when all that can be is given
// back.
static size_t memory_in_use(Scene *scene)
{
    transport_trim(scene->server.transport);
    malloc_trim(0);
    return process_anonymous_bytes(getpid());
}

static void wait_for_memory(Scene *scene)
{
    if (IS_SANITIZED) return; // a sanitizer keeps what is freed
    while (memory_in_use(scene) > scene->memory_bytes + MEMORY_SLACK_BYTES)
        sched_yield();
}

static void scene_open(Scene *scene)
{
    server_open(&scene->server, NULL);
    engine_new_session(scene->server.engine, NULL, scene->session);
    char *text = malloc(LARGE_TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', LARGE_TEXT_BYTES);
    text[LARGE_TEXT_BYTES] = '\0';
    engine_append_text(scene->server.engine, scene->session, text, scene->large);
    text[SMALL_TEXT_BYTES] = '\0';
    engine_append_text(scene->server.engine, scene->session, text, scene->small);
    free(text);
    scene->good = sp_open(scene->server.path);
    check_served(scene->good);
    scene->descriptors = descriptor_count();
    scene->memory_bytes = memory_in_use(scene);
}

static void scene_serve(Scene *scene, size_t turn)
{
    if (turn % SERVED_EVERY == 0) check_served(scene->good);
}

// Nothing is left of the hostile ones, and the server serves old clients and new ones.
static void scene_close(Scene *scene)
{
    wait_for_descriptors(scene->descriptors);
    wait_for_clients(&scene->server, 1);
    wait_for_memory(scene);
    check_served(scene->good);
    Sp late = sp_open(scene->server.path);
    check_served(late);
    sp_close(&late);
    sp_close(&scene->good);
    server_close(&scene->server);
}

static uint64_t replies_of(Scene *scene, size_t method)
{
    MethodCounts counts;
    engine_method_counts(scene->server.engine, method, &counts);
    return counts.calls;
}

TEST(peers_that_connect_and_hang_up)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    size_t count = test_scaled(20000);
    for (size_t i = 0; i < count; i++) {
        Sp sp = sp_connect(scene.server.path);
        if (i % 3 == 1) (void)sp_hello(sp, SP_REQ);
        if (i % 3 == 2) (void)sp_read_hello(sp);
        sp_close(&sp);
        scene_serve(&scene, i);
    }
}

// Clients that send 64 requests and are gone, with replies unread.
static void kill_in_mid_pipeline(const char *message, Scene *scene, size_t count)
{
    Slice request = request_get_message(message);
    for (size_t i = 0; i < count; i++) {
        Sp sp = sp_open(scene->server.path);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++)
            CHECK(sp_send(sp, j, request));
        if (i % 2 == 1) {
            struct pollfd wanted = {.fd = sp.fd, .events = POLLIN};
            CHECK_EQ(poll(&wanted, 1, -1), 1); // the first reply is there
        }
        sp_close(&sp);
        scene_serve(scene, i);
    }
    request_free(&request);
}

TEST(pipelined_clients_killed_with_small_replies_unread)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    kill_in_mid_pipeline(scene.small, &scene, test_scaled(20000));
}

static void kill_with_large_replies(size_t count)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    kill_in_mid_pipeline(scene.large, &scene, count);
}

// 20 000 in all, in parts that end in time on a slow machine.
#define LARGE_REPLIES_UNREAD(part)                                                                 \
    TEST(pipelined_clients_killed_with_large_replies_unread_##part)                                \
    {                                                                                              \
        kill_with_large_replies(test_scaled(2500));                                                \
    }

LARGE_REPLIES_UNREAD(1)
LARGE_REPLIES_UNREAD(2)
LARGE_REPLIES_UNREAD(3)
LARGE_REPLIES_UNREAD(4)
LARGE_REPLIES_UNREAD(5)
LARGE_REPLIES_UNREAD(6)
LARGE_REPLIES_UNREAD(7)
LARGE_REPLIES_UNREAD(8)

TEST(pipelined_clients_killed_while_the_writer_is_held)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    gate_close(&scene.server.gate);
    Slice request = request_append(scene.session, "of a client that is gone", NULL);
    for (size_t i = 0; i < test_scaled(50); i++) {
        Sp sp = sp_open(scene.server.path);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++)
            CHECK(sp_send(sp, j, request));
        sp_close(&sp);
        check_served(scene.good);
    }
    request_free(&request);
    gate_open(&scene.server.gate);
}

TEST(clients_that_never_read_are_cut_off)
{
    enum { CLIENTS = 50 };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Slice request = request_get_message(scene.large);
    Sp clients[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = sp_open(scene.server.path);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX; j++)
            CHECK(sp_send(clients[i], j, request));
        check_served(scene.good);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        sp_wait_closed(clients[i]);
        sp_close(&clients[i]);
        check_served(scene.good);
    }
    request_free(&request);
}

TEST(a_client_that_sends_on_and_on_without_reading_is_cut_off)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Slice request = request_get_message(scene.small);
    Sp sp = sp_open(scene.server.path);
    for (uint32_t i = 0; sp_send(sp, i, request); i++)
        scene_serve(&scene, i);
    sp_close(&sp);
    request_free(&request);
}

TEST(half_a_handshake_keeps_nobody_else_waiting)
{
    enum { PEERS = 100 };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp peers[PEERS];
    for (size_t i = 0; i < PEERS; i++) {
        peers[i] = sp_connect(scene.server.path);
        CHECK(sp_write(peers[i], "\0SP\0", i % 5));
    }
    check_served(scene.good);
    Sp newcomer = sp_open(scene.server.path);
    check_served(newcomer);
    sp_close(&newcomer);
    for (size_t i = 0; i < PEERS; i++)
        sp_close(&peers[i]);
}

TEST(a_length_without_end_ends_its_connection)
{
    static const uint8_t LENGTHS[][8] = {
        {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0, 0, 1, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 0x40, 0, 0, 0},
        {0, 0, 0, 0, 0x01, 0x01, 0, 1}, // the limit and one more
    };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < test_scaled(1000); i++) {
        Sp sp = sp_open(scene.server.path);
        CHECK(sp_write(sp, "\1", 1));
        (void)sp_write(sp, LENGTHS[i % 5], 8);
        sp_wait_closed(sp);
        sp_close(&sp);
        scene_serve(&scene, i);
    }
}

// Its 64 large replies are made as it reads them: the requests wait, and none is lost.
TEST(who_does_not_read_costs_no_more_work_than_its_first_replies)
{
    enum { MADE_MAX = 16 }; // 1 MiB of them, and what runs on each thread meanwhile
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Slice request = request_get_message(scene.large);
    uint64_t replies_before = replies_of(&scene, METHOD_GET_MESSAGE);
    TransportStats stats;
    transport_stats(scene.server.transport, &stats);
    Sp lazy = sp_open(scene.server.path);
    for (uint32_t i = 0; i < CLIENT_REQUESTS_MAX; i++)
        CHECK(sp_send(lazy, i, request));
    wait_for_requests(&scene.server, stats.requests + CLIENT_REQUESTS_MAX);
    check_served(scene.good);
    CHECK(replies_of(&scene, METHOD_GET_MESSAGE) <= replies_before + MADE_MAX);
    for (uint32_t i = 0; i < CLIENT_REQUESTS_MAX; i++) {
        uint32_t id;
        Slice reply;
        CHECK(sp_receive(lazy, &id, &reply));
        CHECK_EQ(reply_code(reply), 0);
        CHECK(reply.size > LARGE_TEXT_BYTES);
        sp_free(&reply);
    }
    CHECK_EQ(replies_of(&scene, METHOD_GET_MESSAGE), replies_before + CLIENT_REQUESTS_MAX);
    sp_close(&lazy);
    request_free(&request);
}

TEST(a_length_that_is_never_filled_costs_its_connection_only)
{
    enum { PEERS = 64 };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp peers[PEERS];
    for (size_t i = 0; i < PEERS; i++) {
        peers[i] = sp_open(scene.server.path);
        CHECK(sp_write(peers[i], "\1\0\0\0\0\1\0\0\0half", 13));
    }
    check_served(scene.good);
    for (size_t i = 0; i < PEERS; i++)
        sp_close(&peers[i]);
}

TEST(frames_that_are_no_requests)
{
    static const struct {
        const char *bytes;
        size_t size;
    } FRAMES[] = {
        {"\2\0\0\0\0\0\0\0\4\200\0\0\1", 13}, // a type that there is not
        {"\1\0\0\0\0\0\0\0\0", 9},            // nothing in it
        {"\1\0\0\0\0\0\0\0\3\200\0\0", 12},   // half an id
        {"\1\0\0\0\0\0\0\0\4\0\0\0\1", 13},   // a hop, and no id
    };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < test_scaled(400); i++) {
        Sp sp = sp_open(scene.server.path);
        (void)sp_write(sp, FRAMES[i % 4].bytes, FRAMES[i % 4].size);
        sp_wait_closed(sp);
        sp_close(&sp);
        scene_serve(&scene, i);
    }
}

TEST(a_request_through_too_many_hops_is_dropped_and_one_through_seven_is_answered)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Slice health = request_health();
    for (size_t hops = 7; hops <= 9; hops += 2) {
        uint8_t head[9] = {1};
        size_t size = 4 * hops + 4 + health.size;
        head[7] = (uint8_t)(size >> 8);
        head[8] = (uint8_t)size;
        Sp sp = sp_open(scene.server.path);
        CHECK(sp_write(sp, head, sizeof(head)));
        for (size_t i = 0; i < hops; i++)
            CHECK(sp_write(sp, "\0\0\0\7", 4));
        CHECK(sp_write(sp, "\200\0\0\5", 4));
        CHECK(sp_write(sp, health.bytes, health.size));
        Slice payload;
        if (hops == 7) {
            CHECK(sp_receive_frame(sp, &payload));
            CHECK(payload.size > 4 * hops + 4);
            CHECK_EQ(reply_code(slice_skip(payload, 4 * hops + 4)), 0);
            sp_free(&payload);
        }
        check_served(sp); // the connection lives, and this is the next reply on it
        sp_close(&sp);
    }
    request_free(&health);
}

// NNG may accept nobody for 100 ms after one of these: newcomers wait, those who are connected do
// not notice. So each peer is waited for, and the good client calls all the time.
TEST(hellos_that_are_none)
{
    static const char *const HELLOS[] = {"GET / HT", "\0SP\1\0\x30\0\0", "\0SP\0\0\x30\0\1",
                                         "\0SP\0\0\x31\0\0", "\0SP\0\0\x21\0\0"};
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < test_scaled(500); i++) {
        Sp sp = sp_connect(scene.server.path);
        CHECK(sp_write(sp, HELLOS[i % 5], SP_HELLO_BYTES));
        do {
            check_served(scene.good);
        } while (!sp_is_closed(sp));
        sp_close(&sp);
    }
}

TEST(good_hellos_followed_by_noise)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < test_scaled(5000); i++) {
        uint8_t noise[512];
        size_t size = 1 + random_below(&random, sizeof(noise));
        random_fill(&random, noise, size);
        if (i % 2 == 1) {
            // A frame that ends, with noise where the request should be.
            memset(noise, 0, 8);
            noise[0] = 1;
            noise[8] = (uint8_t)(4 + random_below(&random, 200));
            noise[9] |= 0x80;
            size = sizeof(noise);
        }
        Sp sp = sp_open(scene.server.path);
        (void)sp_write(sp, noise, size);
        sp_close(&sp);
        scene_serve(&scene, i);
    }
}
