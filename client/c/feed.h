// Feeds: the messages of a store's bus (wire/bus_message.h) as they come. A feed may lose messages
// without a notice: the watch above it finds gaps by the sequences and fills them with ListEvents.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef enum FeedResult {
    FEED_MESSAGE,
    FEED_SILENCE, // no message in time
    FEED_LOST,    // messages were lost at this point
    FEED_BROKEN,  // no message will follow
} FeedResult;

typedef struct Feed {
    // Waits for the next message until a monotonic time. The message is borrowed until the next
    // call.
    FeedResult (*next)(struct Feed *feed, int64_t until_ns, Slice *out_message);
    // Frees the feed. A child of fork may call it; the parent's subscription goes on.
    void (*close)(struct Feed *feed);
    bool is_live;        // every message from now on comes; a bus is live from its first message on
    bool has_heartbeats; // a long silence means that the bus is gone
} Feed;
