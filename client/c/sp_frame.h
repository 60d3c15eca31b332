// Frames of SP (wire/sp.h) on a Unix socket, as a client sends and receives them.

#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "wire/sp.h"

enum {
    SP_HEADER_BYTES = SP_FRAME_HEADER_BYTES + SP_ID_BYTES,
    SP_INBOX_BYTES = 32 * 1024,
};

// A frame that is being sent. `sent` counts the bytes that the kernel has taken.
typedef struct SpFrame {
    uint8_t header[SP_HEADER_BYTES];
    Slice body; // borrowed
    size_t sent;
} SpFrame;

void sp_frame_begin(SpFrame *frame, uint32_t id, Slice body);

typedef enum SpResult { SP_DONE, SP_AGAIN, SP_BROKEN } SpResult;

// Sends what fits. SP_AGAIN: the socket is full, poll for POLLOUT first. SP_BROKEN: errno says why.
SpResult sp_frame_send(SpFrame *frame, int fd);

// Receives frames: the caller receives bytes to where sp_reader_room says, and takes frames with
// sp_reader_next.
typedef struct SpReader {
    bool has_no_ids; // frames are those of a PUB socket
    uint8_t inbox[SP_INBOX_BYTES];
    size_t begin, end; // of the bytes in the inbox that are not yet taken
    bool is_in_body;
    uint32_t id;
    size_t body_left;
    Buffer body; // owned
} SpReader;

// Returns where the next bytes may be received to: `*out_size` of them, at least one.
uint8_t *sp_reader_room(SpReader *reader, size_t *out_size);

// Tells the reader that `size` bytes were received there.
void sp_reader_took(SpReader *reader, size_t size);

// Takes the next frame. SP_DONE: the caller owns `*out_body`; `*out_id` is 0 if frames have no IDs.
// SP_AGAIN: more bytes are needed. SP_BROKEN: the bytes are no frame, or there is no memory for it;
// `*out_why` says which.
SpResult sp_reader_next(SpReader *reader, uint32_t *out_id, Buffer *out_body, const char **out_why);

void sp_reader_free(SpReader *reader);
