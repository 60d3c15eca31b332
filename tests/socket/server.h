// A server in the test's own process: an engine with a gate at its seam, and the real sockets in
// front of it; and the requests that tests send to it.

#pragma once

#include <sys/types.h>

#include "gate.h"
#include "sp.h"
#include "transport/transport.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

typedef struct ServerOptions {
    const char *tcp_url; // NULL: none
    const char *tcp_token;
    size_t clients_max; // 0: the usual
    EngineHooks hooks;
    KvSeam seam; // .before NULL: the gate's
} ServerOptions;

typedef struct Server {
    Gate gate;
    Engine *engine;
    Transport *transport;
    char path[108]; // of its socket
} Server;

void server_open(Server *server, const ServerOptions *options); // NULL: the usual
// The same, and on tcp with this token. Returns the port.
uint16_t server_open_tcp(Server *server, const char *token);
void server_close(Server *server);

// Encoded requests, to be freed with request_free.
Slice request_health(void);
Slice request_get_message(const char *message);
Slice request_append(const char *session, const char *text, const char *operation_id);
Slice request_wait_events(uint64_t after_sequence, uint32_t wait_ms);
// These free the one that they are made of.
Slice request_with_token(Slice request, const char *token);
Slice request_with_timeout(Slice request, uint64_t timeout_ms);
void request_free(Slice *request);

// What a reply says: gRPC's code, 0 for one that succeeded, and its reason.
int reply_code(Slice reply);
const char *reply_reason(Slice reply); // good until the next call

// The id of the record or receipt in a reply, which must be a success.
void reply_id(Slice reply, IdText out);

// Creates a session through a connection; and how many messages one has.
void new_session(Sp sp, IdText out);
uint64_t session_message_count(Sp sp, const char *session);

// Makes a call of a reply that must have this code, and frees both.
void call_expect(Sp sp, Slice request, int code);

// Makes a Health call on a connection; it must succeed.
void check_served(Sp sp);

// Descriptors that this process has open.
size_t descriptor_count(void);

// Waits until it has at most this many: connections go a moment after their peers.
void wait_for_descriptors(size_t count);

// Resident memory of a process: all of it, or without what is mapped from files.
size_t process_resident_bytes(pid_t pid);
size_t process_anonymous_bytes(pid_t pid);

// Lets so much of the clock that deadlines go by pass.
void wait_for_milliseconds(int64_t milliseconds);

// Waits until so many clients are connected, or so many requests have come since the start.
void wait_for_clients(Server *server, size_t count);
void wait_for_requests(Server *server, uint64_t count);
