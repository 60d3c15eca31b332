// The SP feed. PUB sends everything to every subscriber, so nothing is sent after the hello; the
// watch drops topics that it does not want. Everything received is handed out before the socket is
// read again, so a burst costs few system calls.

#include "feed_sp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "os/socket_path.h"
#include "sp_dial.h"
#include "sp_frame.h"
#include "wait.h"

enum { POLL_MS_MAX = 60 * 1000 };

typedef struct SpFeed {
    Feed feed;
    int fd;
    uint8_t hello[SP_HELLO_BYTES];
    size_t hello_size; // bytes of it received so far
    SpReader reader;
    Buffer message; // owned; the last one that was handed out
} SpFeed;

static FeedResult sp_feed_next(Feed *feed, int64_t until_ns, Slice *out_message);
static void sp_feed_close(Feed *feed);

Feed *feed_sp_open(const char *path)
{
    char events[SOCKET_PATH_BYTES_MAX + 1];
    if (!socket_path_of_events(path, events)) return NULL;
    SpFeed *sp = calloc(1, sizeof(SpFeed));
    if (!sp) return NULL;
    sp->feed = (Feed){.next = sp_feed_next, .close = sp_feed_close, .has_heartbeats = true};
    sp->reader.has_no_ids = true;
    sp->fd = sp_subscribe(events);
    if (sp->fd >= 0) return &sp->feed;
    free(sp);
    return NULL;
}

// Receives what the socket has. Returns false if the other side hung up or is no PUB socket.
static bool receive(SpFeed *sp)
{
    bool is_hello = sp->hello_size < SP_HELLO_BYTES;
    size_t room = SP_HELLO_BYTES - sp->hello_size;
    uint8_t *bytes = is_hello ? sp->hello + sp->hello_size : sp_reader_room(&sp->reader, &room);
    ssize_t count = recv(sp->fd, bytes, room, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (is_hello) {
        sp->hello_size += (size_t)count;
    } else {
        sp_reader_took(&sp->reader, (size_t)count);
    }
    bool is_other = sp->hello_size == SP_HELLO_BYTES && !sp_hello_is(sp->hello, SP_PROTOCOL_PUB);
    return count > 0 && !is_other;
}

static FeedResult sp_feed_next(Feed *feed, int64_t until_ns, Slice *out_message)
{
    SpFeed *sp = (SpFeed *)feed;
    for (bool is_first = true;; is_first = false) {
        uint32_t id;
        Buffer message;
        const char *why;
        SpResult result = sp_reader_next(&sp->reader, &id, &message, &why);
        if (result == SP_BROKEN) return FEED_BROKEN;
        if (result == SP_DONE) {
            buffer_free(&sp->message);
            sp->message = message;
            *out_message = buffer_slice(&sp->message);
            feed->is_live = true;
            return FEED_MESSAGE;
        }
        if (!is_first && time_is_past(until_ns)) return FEED_SILENCE;
        struct pollfd wanted = {.fd = sp->fd, .events = POLLIN};
        if (poll(&wanted, 1, poll_ms_until(until_ns, POLL_MS_MAX)) > 0 && !receive(sp)) {
            return FEED_BROKEN;
        }
    }
}

static void sp_feed_close(Feed *feed)
{
    SpFeed *sp = (SpFeed *)feed;
    close(sp->fd);
    sp_reader_free(&sp->reader);
    buffer_free(&sp->message);
    free(sp);
}
