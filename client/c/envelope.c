// The envelope, by hand: the body is neither copied into it nor out of it.

#include "envelope.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "channel.h"
#include "text/utf8.h"
#include "wire/wire.h"

enum {
    METHOD = 1,
    OPERATION_ID = 2,
    TIMEOUT_MS = 3,
    TRACEPARENT = 4,
    TOKEN = 5,
    SYNC = 6,
    BODY = 15,

    STATUS = 1,
    STATUS_CODE = 1,
    STATUS_MESSAGE = 2,
    STATUS_REASON = 3,

    CODE_MAX = 16, // gRPC's greatest
};

// A status as it is read: each field may be said again by a later one.
typedef struct Said {
    int32_t code;
    Slice message, reason;
} Said;

static Error text_write(Buffer *out, uint32_t number, const char *text)
{
    if (!text || !*text) return ERROR_NONE;
    return wire_append_bytes(out, number, slice_of(text));
}

Error envelope_write(Buffer *out, const Envelope *envelope, size_t body_bytes)
{
    Error error = text_write(out, METHOD, envelope->method);
    if (!error) error = text_write(out, OPERATION_ID, envelope->operation_id);
    if (!error && envelope->timeout_ms != 0) {
        error = wire_append_varint(out, TIMEOUT_MS, (uint64_t)envelope->timeout_ms);
    }
    if (!error) error = text_write(out, TRACEPARENT, envelope->traceparent);
    if (!error) error = text_write(out, TOKEN, envelope->token);
    if (!error && envelope->sync) error = wire_append_varint(out, SYNC, 1);
    if (!error && body_bytes > 0) error = wire_append_header(out, BODY, body_bytes);
    return error;
}

static bool is_text(const WireField *field)
{
    bool is_ours = field->number == STATUS_MESSAGE || field->number == STATUS_REASON;
    return is_ours && field->type == WIRE_BYTES;
}

// A status that is said twice is one message in two pieces: what the second leaves out stays, so
// it cannot turn a failure into a success by saying less. Each text is checked, also one that a
// later one takes the place of. False: malformed.
static bool status_read(Slice bytes, Said *said)
{
    WireField field;
    while (wire_next(&bytes, &field)) {
        if (field.number == STATUS_CODE && field.type == WIRE_VARINT) {
            said->code = (int32_t)(uint32_t)field.value;
        } else if (is_text(&field)) {
            if (!utf8_is_valid(field.bytes)) return false;
            *(field.number == STATUS_MESSAGE ? &said->message : &said->reason) = field.bytes;
        }
    }
    return bytes.size == 0;
}

static void text_read(Slice text, char *out, size_t room)
{
    text = utf8_cut(text, room - 1);
    if (text.size > 0) memcpy(out, text.bytes, text.size);
    out[text.size] = '\0';
}

int envelope_read(Slice reply, TineStatus *status, Slice *out_body)
{
    Said said = {0};
    Slice body = {NULL, 0}, rest = reply;
    WireField field;
    bool is_good = reply.size > 0; // no bytes say nothing, not even that all went well
    while (is_good && wire_next(&rest, &field)) {
        if (field.type != WIRE_BYTES) continue;
        if (field.number == STATUS) is_good = status_read(field.bytes, &said);
        if (field.number == BODY) body = field.bytes;
    }
    if (!is_good || rest.size > 0) {
        return status_set(status, STATUS_INTERNAL, "INTERNAL", "the reply cannot be decoded");
    }
    if (said.code == STATUS_OK) {
        *out_body = body;
        return status_set(status, STATUS_OK, "", "");
    }
    if (said.code < 0 || said.code > CODE_MAX) said.code = STATUS_UNKNOWN;
    TineStatus read;
    text_read(said.reason, read.reason, sizeof(read.reason));
    text_read(said.message, read.message, sizeof(read.message));
    return status_set(status, said.code, read.reason, read.message);
}
