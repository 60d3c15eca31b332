// What the files of the client share.

#pragma once

#include <stdatomic.h>

#include "channel.h"

enum { REPLIES_KEPT = 4 };

// Memory for a reply while nobody needs it. In a child of fork one that was taken stays so.
typedef struct KeptReply {
    atomic_bool is_taken;
    Buffer buffer; // owned; of whoever took it
} KeptReply;

struct Tine {
    Channel *channel; // owned
    char *url;        // owned; NULL: made from a channel
    char *token;      // owned; NULL: none
    int64_t retry_ms;
    bool wait_for_server;
    bool reads_directly;    // the channel is one of channel_direct
    int64_t bus_silence_ms; // after so long without a heartbeat a bus is given up; tests set it …
    int64_t bus_retry_ms;   // … and this: until it is tried again, twice as long each time
    KeptReply replies[REPLIES_KEPT];
    atomic_uint_fast64_t call_count;
    bool makes_no_ids; // for tests: a write without an operation_id is sent without
};

// Makes a client of a channel, which it takes.
int tine_from_channel(Channel *channel, Tine **out_tine);

enum {
    RETRY_MS_DEFAULT = 10 * 1000,
    BUS_SILENCE_MS_DEFAULT = 15 * 1000, // three heartbeats
    BUS_RETRY_MS_DEFAULT = 50,
    REPLY_GRACE_MS = 500, // the server's own answer to a timeout comes after it
};
