// Frames. A large body is received straight into its own memory. Small frames are received through
// the inbox, several with one recv(2).

#include "sp_frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "channel.h"

void sp_frame_begin(SpFrame *frame, uint32_t id, Slice body)
{
    sp_frame_write(SP_ID_BYTES + body.size, frame->header);
    sp_id_write(id, frame->header + SP_FRAME_HEADER_BYTES);
    frame->body = body;
    frame->sent = 0;
}

SpResult sp_frame_send(SpFrame *frame, int fd)
{
    size_t whole = SP_HEADER_BYTES + frame->body.size;
    while (frame->sent < whole) {
        struct iovec parts[2];
        size_t count = 0;
        Slice header = slice_skip(slice(frame->header, SP_HEADER_BYTES), frame->sent);
        size_t body_sent = frame->sent > SP_HEADER_BYTES ? frame->sent - SP_HEADER_BYTES : 0;
        Slice body = slice_skip(frame->body, body_sent);
        if (header.size > 0) {
            parts[count++] = (struct iovec){(void *)(uintptr_t)header.bytes, header.size};
        }
        if (body.size > 0) {
            parts[count++] = (struct iovec){(void *)(uintptr_t)body.bytes, body.size};
        }
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN ? SP_AGAIN : SP_BROKEN;
        frame->sent += (size_t)sent;
    }
    return SP_DONE;
}

// Returns whether the rest of a body is so large that it is received without the inbox.
static bool is_direct(const SpReader *reader)
{
    return reader->is_in_body && reader->begin == reader->end &&
           reader->body_left > SP_INBOX_BYTES / 2;
}

uint8_t *sp_reader_room(SpReader *reader, size_t *out_size)
{
    if (is_direct(reader)) {
        *out_size = reader->body_left;
        return reader->body.bytes + reader->body.end;
    }
    size_t left = reader->end - reader->begin; // less than a header
    memmove(reader->inbox, reader->inbox + reader->begin, left);
    reader->begin = 0;
    reader->end = left;
    *out_size = SP_INBOX_BYTES - left;
    return reader->inbox + left;
}

void sp_reader_took(SpReader *reader, size_t size)
{
    if (is_direct(reader)) {
        buffer_grow(&reader->body, size);
        reader->body_left -= size;
    } else {
        reader->end += size;
    }
}

static SpResult header_read(SpReader *reader, const char **out_why)
{
    const uint8_t *bytes = reader->inbox + reader->begin;
    size_t id_bytes = reader->has_no_ids ? 0 : SP_ID_BYTES;
    size_t begun_bytes = reader->end - reader->begin;
    if (begun_bytes < SP_FRAME_HEADER_BYTES) return SP_AGAIN;
    uint64_t length;
    *out_why = "it sent a frame that is none of SP";
    if (!sp_frame_read(bytes, &length) || length < id_bytes) return SP_BROKEN;
    *out_why = "it sent a reply that is too long";
    if (length > CHANNEL_PAYLOAD_BYTES_MAX) return SP_BROKEN;
    if (begun_bytes < SP_FRAME_HEADER_BYTES + id_bytes) return SP_AGAIN;
    *out_why = "there is no memory for its reply";
    if (buffer_reset_for(&reader->body, (size_t)length - id_bytes)) return SP_BROKEN;
    reader->id = reader->has_no_ids ? 0 : sp_id_read(bytes + SP_FRAME_HEADER_BYTES);
    reader->body_left = (size_t)length - id_bytes;
    reader->is_in_body = true;
    reader->begin += SP_FRAME_HEADER_BYTES + id_bytes;
    return SP_DONE;
}

SpResult sp_reader_next(SpReader *reader, uint32_t *out_id, Buffer *out_body, const char **out_why)
{
    if (!reader->is_in_body) {
        SpResult result = header_read(reader, out_why);
        if (result != SP_DONE) return result;
    }
    size_t count = reader->end - reader->begin;
    if (count > reader->body_left) count = reader->body_left;
    if (count > 0) {
        memcpy(reader->body.bytes + reader->body.end, reader->inbox + reader->begin, count);
        buffer_grow(&reader->body, count);
        reader->begin += count;
        reader->body_left -= count;
    }
    if (reader->body_left > 0) return SP_AGAIN;
    *out_id = reader->id;
    *out_body = reader->body;
    reader->body = (Buffer){.bytes = NULL};
    reader->is_in_body = false;
    return SP_DONE;
}

void sp_reader_free(SpReader *reader)
{
    buffer_free(&reader->body);
}
