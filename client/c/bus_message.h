// A message of the bus: its topic, a zero byte, an encoded Event (docs/wire.md, "The bus").

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

// What a watch must know of a message before it decodes the event. All borrows from the message.
typedef struct BusMessage {
    Slice topic;
    uint64_t sequence, previous_session_sequence;
    Slice instance_id, type;
    Slice event; // encoded
} BusMessage;

// False: the bytes are no message of the bus, and `*out` says nothing. Each text of the event is
// checked; what is inside of its totals is not looked at.
bool bus_message_read(Slice bytes, BusMessage *out);
