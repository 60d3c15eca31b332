// A peer that speaks SP as a test wants, correctly or not. It uses neither NNG nor server/wire, so
// that tests find an error that both sides of the product share.

#pragma once

#include "base/slice.h"
#include "harness.h"

enum { SP_REQ = 0x30, SP_REP = 0x31, SP_PUB = 0x20, SP_SUB = 0x21 };

enum { PEER_HELLO_BYTES = 8 };

typedef struct Sp {
    int fd;
    bool is_tcp; // its frames have no type byte
} Sp;

// Connects and says nothing yet. Fails the test if it cannot.
Sp sp_connect(const char *path);
Sp sp_connect_tcp(uint16_t port);

// Says hello as `protocol`. False: the peer is gone.
bool sp_hello(Sp sp, unsigned protocol);

// Reads the peer's hello and returns its protocol; -1: the peer is gone.
int sp_read_hello(Sp sp);

// Connects, both hellos done: a REQ that is ready. Fails the test if it cannot.
Sp sp_open(const char *path);
Sp sp_open_tcp(uint16_t port);
Sp sp_open_when_there(const char *path); // waits until somebody listens

void sp_close(Sp *sp);

// Writes bytes as they are. False: the peer is gone.
bool sp_write(Sp sp, const void *bytes, size_t size);

// Sends one frame: a request with its id. False: the peer is gone.
bool sp_send(Sp sp, uint32_t id, Slice request);

// Receives one frame; its payload is to be freed with sp_free. False: the peer is gone.
bool sp_receive_frame(Sp sp, Slice *out_payload);

// The same of a reply, without its id.
bool sp_receive(Sp sp, uint32_t *out_id, Slice *out_reply);
void sp_free(Slice *payload);

// Returns whether something can be received.
bool sp_is_readable(Sp sp);

// Whether the peer has closed the connection.
bool sp_is_closed(Sp sp);

// Waits until the peer closes the connection; what it sends is not read.
void sp_wait_closed(Sp sp);

// Sends a request and waits for its reply, which is to be freed with sp_free.
Slice sp_call(Sp sp, Slice request);
