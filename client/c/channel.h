// Channels: how a client reaches a store. libtine is a channel and the code above it.

#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "feed.h"
#include "tine.h"
#include "wire/sp.h"

// Who is lent the messages of a page, instead of having them copied into the reply.
typedef struct Lender {
    TineMessageReader read;
    void *context;
    bool *is_enough; // set when `read` said so; nothing more is lent to it then
} Lender;

// One request and its reply. The channel never sends a request twice: what lost its connection is
// the caller's to send again.
typedef struct ChannelCall {
    Slice request;            // the encoded Request; borrowed until the call ends
    bool is_read;             // it changes nothing
    const Lender *lender;     // NULL: none. A channel that cannot lend leaves it alone
    int64_t deadline_ns;      // monotonic: until then the reply is waited for; INT64_MAX: for ever
    int64_t connect_until_ns; // monotonic: until then a connection is waited for; 0: tried for once
    bool waits_at_first;      // also if there never was one; else the first is tried for once
    Buffer *response;         // out: the encoded Response; the memory that is in it may be used
    bool is_broken;           // out: UNAVAILABLE because the connection broke under this call …
    bool was_sent; // out: … after the whole request was sent, so the server may have run it
} ChannelCall;

// Sends an encoded Request and receives the encoded Response. Returns 0, or the code of a failure
// that the server knows nothing of: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED.
typedef struct Channel {
    int (*call)(struct Channel *channel, ChannelCall *call, TineStatus *status);
    void (*close)(struct Channel *channel); // no call may be running
    // Subscribes to the bus of the same store; waits for nothing. NULL when there is none (now), or
    // no memory; else the caller's. The member is NULL where there never is one.
    Feed *(*feed_open)(struct Channel *channel);
    // A number that is another when the connection is another; odd while there is one. `looks`:
    // asks the kernel first whether it is still there. NULL: it cannot be told.
    unsigned (*connection_serial)(struct Channel *channel, bool looks);
    // The user behind the connection: who listens there; -1: there is none, or it is not known. The
    // member is there where the one above is.
    int64_t (*peer_user)(struct Channel *channel);
    bool is_remote; // there is a connection that may break: the client retries above it
} Channel;

enum {
    CHANNEL_IN_FLIGHT_MAX = 64, // the server refuses the 65th of a connection
    // A page of 16 MiB and what is around it; no server sends a longer one.
    CHANNEL_PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024,
    CHANNEL_RESPONSE_BYTES_MAX = CHANNEL_PAYLOAD_BYTES_MAX - SP_ID_BYTES,
};
