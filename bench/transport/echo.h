// Echoes: servers that answer with as many bytes as they are asked for, and their clients. The
// first four bytes of a request say how many, in this machine's order.

#pragma once

#include "base/slice.h"

// A blocking client on a plain Unix socket; the server is as plain.
typedef struct RawEcho {
    int fd;
    uint8_t *reply; // owned
    size_t reply_bytes_max;
} RawEcho;

void raw_echo_open(RawEcho *echo, const char *socket, size_t reply_bytes_max);
void raw_echo_call(RawEcho *echo, size_t request_bytes, size_t reply_bytes);
void raw_echo_close(RawEcho *echo);

// libnng's REQ with its blocking calls; the server is a REP with the same.
typedef struct NngEcho NngEcho;

NngEcho *nng_echo_open(const char *socket);
void nng_echo_call(NngEcho *echo, size_t request_bytes, size_t reply_bytes);
void nng_echo_close(NngEcho *echo);

// The request of an echo, filled into `out`.
void echo_request(uint8_t *out, size_t request_bytes, size_t reply_bytes);
