// A message of the bus is taken apart without decoding its event: most are dropped by those who
// watch something else.

#include "bus_message.h"

#include <string.h>

#include "text/utf8.h"
#include "wire/wire.h"

// Fields of Event by number.
enum {
    SEQUENCE = 1,
    PREVIOUS_SESSION_SEQUENCE = 2,
    INSTANCE_ID = 3,
    SESSION_ID = 4,
    TYPE = 5,
    MESSAGE_ID = 6,
    RECORD_ID = 7,
    OPERATION_ID = 8,
    DATA_JSON = 12,
};

static bool is_text(uint32_t number)
{
    switch (number) {
    case INSTANCE_ID:
    case SESSION_ID:
    case TYPE:
    case MESSAGE_ID:
    case RECORD_ID:
    case OPERATION_ID:
    case DATA_JSON: return true;
    default: return false;
    }
}

bool bus_message_read(Slice bytes, BusMessage *out)
{
    const uint8_t *zero = bytes.size > 0 ? memchr(bytes.bytes, 0, bytes.size) : NULL;
    if (!zero) return false;
    *out = (BusMessage){.topic = slice(bytes.bytes, (size_t)(zero - bytes.bytes))};
    if (!utf8_is_valid(out->topic)) return false;

    Slice rest = out->event = slice_skip(bytes, out->topic.size + 1);
    WireField field;
    while (wire_next(&rest, &field)) {
        if (field.type == WIRE_VARINT) {
            if (field.number == SEQUENCE) out->sequence = field.value;
            if (field.number == PREVIOUS_SESSION_SEQUENCE) {
                out->previous_session_sequence = field.value;
            }
        } else if (field.type == WIRE_BYTES && is_text(field.number)) {
            if (!utf8_is_valid(field.bytes)) return false;
            if (field.number == INSTANCE_ID) out->instance_id = field.bytes;
            if (field.number == TYPE) out->type = field.bytes;
        }
    }
    return rest.size == 0;
}
