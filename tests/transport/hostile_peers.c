// The scene, and what hostile peers do in it.

#include "hostile_peers.h"

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/heap.h"
#include "os/random.h"

enum {
    SERVED_EVERY = 10, // hostile peers between two calls of the good client
    MEMORY_SLACK_BYTES = 8 * 1024 * 1024,
};

static const char TOKEN[] = "a token of enough bytes";

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
    size_t allowed = scene->memory_bytes + MEMORY_SLACK_BYTES + scene->lost_bytes_max;
    while (memory_in_use(scene) > allowed)
        sched_yield();
}

// The server is open.
static void set_scene(Scene *scene)
{
    engine_new_session(scene->server.engine, NULL, scene->session);
    char *text = malloc(LARGE_TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', LARGE_TEXT_BYTES);
    text[LARGE_TEXT_BYTES] = '\0';
    engine_append_text(scene->server.engine, scene->session, text, scene->large);
    text[SMALL_TEXT_BYTES] = '\0';
    engine_append_text(scene->server.engine, scene->session, text, scene->small);
    free(text);
    scene->good = scene_greet(scene);
    scene_call(scene);
    scene->descriptors = descriptor_count();
    scene->memory_bytes = memory_in_use(scene);
}

void scene_open(Scene *scene)
{
    *scene = (Scene){.port = 0};
    heap_bound(); // as tined does
    server_open(&scene->server, NULL);
    set_scene(scene);
}

void scene_open_tcp(Scene *scene)
{
    *scene = (Scene){.port = 0};
    heap_bound();
    scene->port = server_open_tcp(&scene->server, TOKEN);
    set_scene(scene);
}

void scene_call(Scene *scene)
{
    call_expect(scene->good, scene_request(scene, request_health()), STATUS_OK);
}

void scene_serve(Scene *scene, size_t turn)
{
    if (turn % SERVED_EVERY == 0) scene_call(scene);
}

void scene_close(Scene *scene)
{
    wait_for_descriptors(scene->descriptors);
    wait_for_clients(&scene->server, 1);
    wait_for_memory(scene);
    scene_call(scene);
    Sp late = scene_greet(scene);
    call_expect(late, scene_request(scene, request_health()), STATUS_OK);
    sp_close(&late);
    sp_close(&scene->good);
    server_close(&scene->server);
}

Sp scene_connect(Scene *scene)
{
    return scene->port ? sp_connect_tcp(scene->port) : sp_connect(scene->server.path);
}

Sp scene_greet(Scene *scene)
{
    return scene->port ? sp_open_tcp(scene->port) : sp_open(scene->server.path);
}

Slice scene_request(Scene *scene, Slice request)
{
    return scene->port ? request_with_token(request, TOKEN) : request;
}

void peers_hang_up(Scene *scene, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Sp sp = scene_connect(scene);
        if (i % 3 == 1) (void)sp_hello(sp, SP_REQ);
        if (i % 3 == 2) (void)sp_read_hello(sp);
        sp_close(&sp);
        scene_serve(scene, i);
    }
}

static void send_all(Sp sp, Slice request)
{
    for (uint32_t i = 0; i < CLIENT_REQUESTS_MAX; i++)
        CHECK(sp_send(sp, i, request));
}

// Each sends 64 requests and is gone, with replies unread.
void peers_die_in_mid_pipeline(Scene *scene, const char *message, size_t count)
{
    Slice request = scene_request(scene, request_get_message(message));
    for (size_t i = 0; i < count; i++) {
        Sp sp = scene_greet(scene);
        send_all(sp, request);
        if (i % 2 == 1) {
            struct pollfd wanted = {.fd = sp.fd, .events = POLLIN};
            CHECK_EQ(poll(&wanted, 1, -1), 1); // the first reply is there
        }
        sp_close(&sp);
        scene_serve(scene, i);
    }
    request_free(&request);
}

void peers_die_while_the_writer_is_held(Scene *scene, size_t count)
{
    gate_close(&scene->server.gate);
    Slice request =
        scene_request(scene, request_append(scene->session, "of a client that is gone", NULL));
    for (size_t i = 0; i < count; i++) {
        Sp sp = scene_greet(scene);
        send_all(sp, request);
        sp_close(&sp);
        scene_call(scene);
    }
    request_free(&request);
    gate_open(&scene->server.gate);
}

// The good one is the only client that is left: a peer on tcp hears of it only when it reads.
void peers_never_read(Scene *scene, size_t count)
{
    Slice request = scene_request(scene, request_get_message(scene->large));
    Sp *clients = calloc(count, sizeof(Sp));
    CHECK(clients != NULL);
    for (size_t i = 0; i < count; i++) {
        clients[i] = scene_greet(scene);
        send_all(clients[i], request);
        scene_call(scene);
    }
    wait_for_clients(&scene->server, 1);
    for (size_t i = 0; i < count; i++) {
        sp_close(&clients[i]);
        scene_call(scene);
    }
    free(clients);
    request_free(&request);
}

void peers_send_lengths_without_end(Scene *scene, size_t count)
{
    static const uint8_t LENGTHS[][8] = {
        {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0, 0, 1, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 0x40, 0, 0, 0},
        {0, 0, 0, 0, 0x01, 0x01, 0, 1}, // the limit and one more
    };
    for (size_t i = 0; i < count; i++) {
        Sp sp = scene_greet(scene);
        if (!scene->port) CHECK(sp_write(sp, "\1", 1));
        (void)sp_write(sp, LENGTHS[i % 5], 8);
        sp_wait_closed(sp);
        sp_close(&sp);
        scene_serve(scene, i);
    }
}

void peers_send_noise(Scene *scene, size_t count)
{
    Random random;
    random_seed(&random, test_seed());
    size_t type_bytes = scene->port ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        uint8_t noise[512];
        size_t size = 1 + random_below(&random, sizeof(noise));
        random_fill(&random, noise, size);
        if (i % 2 == 1) {
            // A frame that ends, with noise where the request should be.
            memset(noise, 0, type_bytes + 7);
            if (type_bytes) noise[0] = 1;
            noise[type_bytes + 7] = (uint8_t)(4 + random_below(&random, 200));
            noise[type_bytes + 8] |= 0x80;
            size = sizeof(noise);
        }
        Sp sp = scene_greet(scene);
        (void)sp_write(sp, noise, size);
        sp_close(&sp);
        scene_serve(scene, i);
    }
}
