// Feeds: what a store's bus sends, as it comes. A feed may lose messages and need not say so; the
// watch above it finds the gaps by the sequences and fills them with ListEvents.
//
// A message is a topic, a zero byte, and an encoded Event.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef enum FeedResult {
    FEED_MESSAGE,
    FEED_SILENCE, // none came in the time
    FEED_LOST,    // here messages were lost
    FEED_BROKEN,  // there will be no more
} FeedResult;

typedef struct Feed {
    // The next message, waited for until a monotonic time. It borrows from the feed until the next
    // call.
    FeedResult (*next)(struct Feed *feed, int64_t until_ns, Slice *out_message);
    void (*close)(struct Feed *feed); // also in a child of fork, where its parent goes on
    bool is_live;        // whatever is sent from now on comes here; else that begins with a message
    bool has_heartbeats; // a long silence is a fault
} Feed;
