// A server that speaks the SP wire by hand, one thread a connection, and does what a test's
// script says. It checks what it receives byte by byte, and nothing of libtine is in it.
//
//     static void answer_all(WireConnection *connection)
//     {
//         wire_hello(connection);
//         for (WireRequest request; wire_next_request(connection, &request);) wire_echo(…);
//     }
//     WireServer *server = wire_server_start(answer_all, NULL);

#pragma once

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "harness.h"

typedef struct WireServer WireServer;

typedef struct WireConnection {
    WireServer *server;
    int fd;         // shut down when the server stops, closed when the script returns
    unsigned index; // 0: the first that came
    void *context;  // the test's
} WireConnection;

enum { WIRE_REQUESTS_MAX = 256 };

typedef struct WireRequest {
    uint32_t id;
    uint8_t *bytes; // kept until the server is stopped
    size_t size;
    const char *method;       // "" if absent; all three kept likewise
    const char *operation_id; // "" if absent
    const char *session_id;   // field 1 of the body, if it is text
    int64_t timeout_ms;
} WireRequest;

// Listens in the test's directory. The script runs in a thread for each connection.
WireServer *wire_server_start(void (*script)(WireConnection *connection), void *context);

// The same at a path of the test's choice.
WireServer *wire_server_start_at(const char *path, void (*script)(WireConnection *connection),
                                 void *context);

// Ends all connections, waits for the scripts, and frees. NULL is allowed.
void wire_server_stop(WireServer **server);

const char *wire_server_url(const WireServer *server); // "ipc://…"; borrowed
unsigned wire_server_connections(WireServer *server);  // accepted so far

// Says hello and checks the client's.
void wire_hello(WireConnection *connection);

// The same as the PUB socket of a bus. False: the client hung up.
bool wire_hello_pub(WireConnection *connection);

// False: the client hung up.
bool wire_next_request(WireConnection *connection, WireRequest *out);

// A reply that succeeded, with field 1 of its body set to a text: LatestUserMessageId's.
void wire_reply_text(WireConnection *connection, uint32_t id, const char *text);
void wire_echo(WireConnection *connection, const WireRequest *request); // the request's session_id
void wire_reply_number(WireConnection *connection, uint32_t id, uint64_t number); // PublishEvent's
void wire_reply_status(WireConnection *connection, uint32_t id, int code, const char *reason);
void wire_reply(WireConnection *connection, uint32_t id, Slice response);

// Bytes as they are. A client that has hung up is no failure.
void wire_send(WireConnection *connection, const void *bytes, size_t size);
bool wire_receive(WireConnection *connection, void *bytes, size_t size); // false: hung up

// Whether something comes within the time.
bool wire_hears_within(WireConnection *connection, int ms);

// Waits until the client hangs up; nothing else may come.
void wire_expect_end(WireConnection *connection);
