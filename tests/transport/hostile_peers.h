// Peers that break off, break the rules, or never read, on the Unix socket or on tcp; and the scene
// in which they do: a server, and a client that behaves.

#pragma once

#include "server.h"

enum { SMALL_TEXT_BYTES = 100, LARGE_TEXT_BYTES = 300 * 1024 };

typedef struct Scene {
    Server server;
    uint16_t port;                    // where the peers connect; 0: on the Unix socket
    Sp good;                          // behaves and stays connected
    size_t descriptors, memory_bytes; // in use then
    size_t lost_bytes_max;            // what the listener may keep of the peers for ever
    IdText session, small, large;     // messages
} Scene;

void scene_open(Scene *scene);     // on the Unix socket
void scene_open_tcp(Scene *scene); // on tcp

// Nothing is left of the hostile ones, no connection, no descriptor, no memory, and the server
// serves old clients and new ones.
void scene_close(Scene *scene);

// Calls of the good client: one now, or one in ten turns.
void scene_call(Scene *scene);
void scene_serve(Scene *scene, size_t turn);

// A peer's connection: without a word, and with both hellos done.
Sp scene_connect(Scene *scene);
Sp scene_greet(Scene *scene);

// The request as this listener wants it, with the token or without; frees the one it is made of.
Slice scene_request(Scene *scene, Slice request);

// `count` of each kind, one after the other.
void peers_hang_up(Scene *scene, size_t count);
void peers_die_in_mid_pipeline(Scene *scene, const char *message, size_t count);
void peers_die_while_the_writer_is_held(Scene *scene, size_t count);
void peers_send_lengths_without_end(Scene *scene, size_t count);
void peers_send_noise(Scene *scene, size_t count);

// `count` at once, each of which asks for 64 large replies; returns when the server has cut off
// all of them.
void peers_never_read(Scene *scene, size_t count);
