// Hostile peers on tcp, where the listener is NNG's.
//
// NNG may lose the message of a reply for ever that is handed to it while its connection closes.
// So of each peer that dies with replies unread one may stay, and not more: 63 others would be
// seen.

#include "base/limits.h"
#include "hostile_peers.h"

#if IS_SANITIZED
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:nng_msg_alloc\n";
}
#endif

TEST(peers_that_hang_up_on_tcp)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    peers_hang_up(&scene, test_scaled(3000));
}

TEST(pipelined_clients_killed_on_tcp_with_small_replies_unread)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    peers_die_in_mid_pipeline(&scene, scene.small, test_scaled(2000));
}

TEST(pipelined_clients_killed_on_tcp_with_large_replies_unread)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    size_t count = test_scaled(200);
    scene.lost_bytes_max = count * LARGE_TEXT_BYTES;
    peers_die_in_mid_pipeline(&scene, scene.large, count);
}

TEST(pipelined_clients_killed_on_tcp_while_the_writer_is_held)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    peers_die_while_the_writer_is_held(&scene, test_scaled(20));
}

TEST(clients_on_tcp_that_never_read_are_cut_off)
{
    enum { CLIENTS = 20 };
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    scene.lost_bytes_max = CLIENTS * LARGE_TEXT_BYTES;
    peers_never_read(&scene, CLIENTS);
}

TEST(a_length_without_end_on_tcp_ends_its_connection)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    peers_send_lengths_without_end(&scene, test_scaled(500));
}

TEST(good_hellos_on_tcp_followed_by_noise)
{
    CLEANUP(scene_close) Scene scene;
    scene_open_tcp(&scene);
    peers_send_noise(&scene, test_scaled(2000));
}
