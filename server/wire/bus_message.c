// Messages of the bus. One is read without decoding its event, because a subscriber drops most of
// them.

#include "wire/bus_message.h"

#include <stdio.h>

#include "fields.h"
#include "text/utf8.h"
#include "wire/wire.h"

size_t bus_topic_write(Slice session_id, Slice type, char out[BUS_TOPIC_BYTES_MAX])
{
    const char *first = session_id.size > 0 ? "session/" : "global";
    int size = snprintf(out, BUS_TOPIC_BYTES_MAX, "%s%.*s/%.*s", first, (int)session_id.size,
                        (const char *)session_id.bytes, (int)type.size, (const char *)type.bytes);
    return (size_t)size;
}

static bool is_text(uint32_t number)
{
    switch (number) {
    case FIELD_EVENT_INSTANCE_ID:
    case FIELD_EVENT_SESSION_ID:
    case FIELD_EVENT_TYPE:
    case FIELD_EVENT_MESSAGE_ID:
    case FIELD_EVENT_RECORD_ID:
    case FIELD_EVENT_OPERATION_ID:
    case FIELD_EVENT_DATA_JSON: return true;
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
            if (field.number == FIELD_EVENT_SEQUENCE) out->sequence = field.value;
            if (field.number == FIELD_EVENT_PREVIOUS_SESSION_SEQUENCE) {
                out->previous_session_sequence = field.value;
            }
        } else if (field.type == WIRE_BYTES && is_text(field.number)) {
            if (!utf8_is_valid(field.bytes)) return false;
            if (field.number == FIELD_EVENT_INSTANCE_ID) out->instance_id = field.bytes;
            if (field.number == FIELD_EVENT_TYPE) out->type = field.bytes;
        }
    }
    return rest.size == 0;
}
