// A message of the bus: its topic, a zero byte, an encoded Event (docs/wire.md, "The bus").

#pragma once

#include "base/slice.h"

#define BUS_TOPIC_HEARTBEAT "heartbeat"

enum { BUS_TOPIC_BYTES_MAX = 320 };

// Writes the topic of an event, with a zero byte: "session/<id>/<type>", or "global/<type>" if
// `session_id` is empty. `type` has at most STRING_BYTES_MAX; without it the result is what all
// topics of the session begin with. Returns the size without the zero byte.
size_t bus_topic_write(Slice session_id, Slice type, char out[BUS_TOPIC_BYTES_MAX]);

static inline size_t bus_message_bytes(size_t topic_bytes, size_t event_bytes)
{
    return topic_bytes + 1 + event_bytes;
}

// Writes a message into memory that has room for bus_message_bytes.
static inline void bus_message_write(uint8_t *out, Slice topic, Slice event)
{
    memcpy(out, topic.bytes, topic.size);
    out[topic.size] = 0;
    memcpy(out + topic.size + 1, event.bytes, event.size);
}

// What a subscriber must know of a message before it decodes the event. Borrows from the message.
typedef struct BusMessage {
    Slice topic;
    uint64_t sequence, previous_session_sequence;
    Slice instance_id, type;
    Slice event; // encoded
} BusMessage;

// Returns false, with `*out` undefined, if the bytes are no message of the bus. Checks each text of
// the event, but not what its totals hold.
bool bus_message_read(Slice bytes, BusMessage *out);
