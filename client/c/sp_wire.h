// The client's side of SP (wire/sp.h) on a Unix socket: connects, sends frames, receives frames. It
// has no threads.

#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "wire/sp.h"

enum {
    SP_HEADER_BYTES = SP_FRAME_HEADER_BYTES + SP_ID_BYTES,
    SP_INBOX_BYTES = 32 * 1024,
    SP_WHY_BYTES = 160,
};

// Connects to a socket and exchanges hellos, until a monotonic time at the latest. Returns the
// file descriptor, or -1 and in `why` a sentence's end: "no such …".
int sp_dial(const char *path, int64_t deadline_ns, char why[SP_WHY_BYTES]);

// Connects a SUB socket and says its hello; waits for nothing. The other side's hello is the first
// that comes. Returns the file descriptor, or -1.
int sp_subscribe(const char *path);

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
