// Channels: how a client reaches a store. Everything else in libtine is built on a channel.

#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "feed.h"
#include "tine.h"
#include "wire/sp.h"

// Receives the messages of a page one by one, so that they need not be copied into a reply.
typedef struct Lender {
    TineMessageReader read;
    void *context;
    bool *is_enough; // set when `read` returned false; it is not called again then
} Lender;

// One request and its reply. A channel never sends a request twice. If its connection broke, the
// caller decides whether to send it again.
typedef struct ChannelCall {
    Slice request;            // the encoded Request; borrowed until the call ends
    bool is_read;             // the method only reads
    const Lender *lender;     // NULL: none. A channel that cannot lend ignores it
    int64_t deadline_ns;      // monotonic: how long to wait for the reply; INT64_MAX: for ever
    int64_t connect_until_ns; // monotonic: how long to try to connect; 0: one attempt
    bool waits_at_first;      // also for the first connection, which else is one attempt
    Buffer *response;         // out: the encoded Response; its memory may be used again
    bool is_broken;           // out: UNAVAILABLE because the connection broke during the call …
    bool was_sent; // out: … after the whole request was sent: the server may have run it
} ChannelCall;

typedef struct Channel {
    // Sends an encoded Request and receives the encoded Response. Returns 0, or the code of a
    // failure on this side: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED.
    int (*call)(struct Channel *channel, ChannelCall *call, TineStatus *status);
    // Frees the channel. No call may be running.
    void (*close)(struct Channel *channel);
    // Subscribes to the bus of the same store, without waiting. Returns NULL if there is none at
    // the moment, or no memory; the caller closes the feed. The member is NULL if a channel never
    // has a bus.
    Feed *(*feed_open)(struct Channel *channel);
    // Returns a number that changes with the connection; it is odd while there is one. `looks`: ask
    // the kernel first whether the connection is still there. The member is NULL if a channel does
    // not know.
    unsigned (*connection_serial)(struct Channel *channel, bool looks);
    // Returns the user who listens at the other end; -1 if there is no connection or the user is
    // not known. Set if connection_serial is.
    int64_t (*peer_user)(struct Channel *channel);
    bool is_remote; // a connection may break: the code above retries
} Channel;

enum {
    CHANNEL_IN_FLIGHT_MAX = 64, // the server refuses the 65th request of a connection
    // A page of 16 MiB with its envelope: no server sends more.
    CHANNEL_PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024,
    CHANNEL_RESPONSE_BYTES_MAX = CHANNEL_PAYLOAD_BYTES_MAX - SP_ID_BYTES,
};
