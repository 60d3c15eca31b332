// The SP wire format of a REQ and of a SUB socket on a Unix stream: the hello and the frames, no
// threads.
//
//     hello   00 'S' 'P' 00 | u16 protocol | 00 00      each side sends one, then reads one
//     frame   01 | u64 length | u32 id, top bit set | body      big-endian; length is id and body
//     of PUB  01 | u64 length | body

#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"

enum {
    SP_HELLO_BYTES = 8,
    SP_HEADER_BYTES = 13,
    SP_INBOX_BYTES = 32 * 1024,
    SP_WHY_BYTES = 160,
};

#define SP_ID_BIT UINT32_C(0x80000000)

// Connects to a socket and exchanges hellos, until a monotonic time at the latest. Returns the
// file descriptor, or -1 and in `why` a sentence's end: "no such …".
int sp_dial(const char *path, int64_t deadline_ns, char why[SP_WHY_BYTES]);

// Connects a SUB socket and says its hello; waits for nothing. The other side's hello is the first
// that comes. Returns the file descriptor, or -1.
int sp_subscribe(const char *path);
bool sp_hello_is_of_pub(const uint8_t hello[SP_HELLO_BYTES]);

// A frame on its way out. `sent` counts its bytes that the kernel has taken.
typedef struct SpFrame {
    uint8_t header[SP_HEADER_BYTES];
    Slice body; // borrowed
    size_t sent;
} SpFrame;

void sp_frame_begin(SpFrame *frame, uint32_t id, Slice body);

typedef enum SpResult { SP_DONE, SP_AGAIN, SP_BROKEN } SpResult;

// Sends what fits. SP_AGAIN: poll for POLLOUT first. SP_BROKEN: errno says why.
SpResult sp_frame_send(SpFrame *frame, int fd);

// Frames on their way in: bytes go where sp_reader_room says, frames come out of sp_reader_next.
typedef struct SpReader {
    bool has_no_ids; // frames are those of PUB
    uint8_t inbox[SP_INBOX_BYTES];
    size_t begin, end; // of what is in the inbox and not yet taken out
    bool is_in_body;
    uint32_t id;
    size_t body_left;
    Buffer body; // owned
} SpReader;

// Where the next bytes may be received to: `*out_size` of them, at least one.
uint8_t *sp_reader_room(SpReader *reader, size_t *out_size);

// `size` bytes were received there.
void sp_reader_took(SpReader *reader, size_t size);

// SP_DONE: a frame is complete, `*out_body` is the caller's, `*out_id` is 0 if it has none.
// SP_AGAIN: more bytes are needed. SP_BROKEN: these are no frames (or there is no memory for one);
// `*out_why` says what.
SpResult sp_reader_next(SpReader *reader, uint32_t *out_id, Buffer *out_body, const char **out_why);

void sp_reader_free(SpReader *reader);
