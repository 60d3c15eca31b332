// The local feed: takes a batch of events at a time from the queue.

#include "feed_local.h"
#include "os/process.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct LocalFeed {
    Feed feed;
    EventQueue *queue; // owned
    EventBatch batch;
    unsigned generation; // of the process that made it
} LocalFeed;

static FeedResult local_feed_next(Feed *feed, int64_t until_ns, Slice *out_message)
{
    LocalFeed *local = (LocalFeed *)feed;
    for (;;) {
        HubEvent event;
        if (event_batch_next(&local->batch, &event)) {
            *out_message = event.message;
            return FEED_MESSAGE;
        }
        if (local->batch.has_lost) {
            local->batch.has_lost = false;
            return FEED_LOST;
        }
        if (!event_queue_take(local->queue, until_ns, &local->batch)) return FEED_SILENCE;
    }
}

static void local_feed_close(Feed *feed)
{
    LocalFeed *local = (LocalFeed *)feed;
    // In a child of fork the hub is as fork left it: nobody may lock it.
    if (local->generation == process_generation()) event_queue_close(local->queue);
    event_batch_free(&local->batch);
    free(local);
}

Feed *feed_local_open(Engine *engine)
{
    LocalFeed *local = calloc(1, sizeof(LocalFeed));
    if (!local) return NULL;
    if (event_queue_open(engine_events(engine), 0, &local->queue)) {
        free(local);
        return NULL;
    }
    local->feed = (Feed){.next = local_feed_next, .close = local_feed_close, .is_live = true};
    local->generation = process_generation();
    return &local->feed;
}
