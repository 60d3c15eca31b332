// The client object that all parts of libtine share.

#pragma once

#include <stdatomic.h>

#include "channel.h"

enum { REPLIES_KEPT = 4 };

// Memory for a reply, kept between calls. In a child of fork one that was taken stays taken.
typedef struct KeptReply {
    atomic_bool is_taken;
    Buffer buffer; // owned; used by the call that took it
} KeptReply;

struct Tine {
    Channel *channel; // owned
    char *url;        // owned; NULL: made from a channel
    char *token;      // owned; NULL: none
    int64_t retry_ms;
    bool wait_for_server;
    bool reads_directly;    // the channel is a channel_direct
    int64_t bus_silence_ms; // a bus without a heartbeat for so long is left; tests set it …
    int64_t bus_retry_ms;   // … and this: the first pause before it is tried again
    KeptReply replies[REPLIES_KEPT];
    atomic_uint_fast64_t call_count;
    bool makes_no_ids; // for tests: makes no operation_ids
};

// Makes a client of a channel, which it takes. Returns 0 or RESOURCE_EXHAUSTED.
int tine_from_channel(Channel *channel, Tine **out_tine);

enum {
    RETRY_MS_DEFAULT = 10 * 1000,
    BUS_SILENCE_MS_DEFAULT = 15 * 1000, // three heartbeats
    BUS_RETRY_MS_DEFAULT = 50,
    REPLY_GRACE_MS = 500, // waits this long for the server's own answer to a timeout
};
