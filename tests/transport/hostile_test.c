// Hostile peers on the Unix socket: none of them harms a client that behaves, and nothing is left
// of them.

#include <sys/socket.h>

#include "base/limits.h"
#include "hostile_peers.h"

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
    peers_hang_up(&scene, test_scaled(20000));
}

TEST(pipelined_clients_killed_with_small_replies_unread)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    peers_die_in_mid_pipeline(&scene, scene.small, test_scaled(20000));
}

static void kill_with_large_replies(size_t count)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    peers_die_in_mid_pipeline(&scene, scene.large, count);
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
    peers_die_while_the_writer_is_held(&scene, test_scaled(50));
}

TEST(clients_that_never_read_are_cut_off)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    peers_never_read(&scene, 50);
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
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    peers_send_lengths_without_end(&scene, test_scaled(1000));
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
        uint8_t header[9] = {1};
        size_t size = 4 * hops + 4 + health.size;
        header[7] = (uint8_t)(size >> 8);
        header[8] = (uint8_t)size;
        Sp sp = sp_open(scene.server.path);
        CHECK(sp_write(sp, header, sizeof(header)));
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

TEST(hellos_that_are_none)
{
    static const char *const HELLOS[] = {"GET / HT", "\0SP\1\0\x30\0\0", "\0SP\0\0\x30\0\1",
                                         "\0SP\0\0\x31\0\0", "\0SP\0\0\x21\0\0"};
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < test_scaled(500); i++) {
        Sp sp = sp_connect(scene.server.path);
        CHECK(sp_write(sp, HELLOS[i % 5], PEER_HELLO_BYTES));
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
    peers_send_noise(&scene, test_scaled(5000));
}
