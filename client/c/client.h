// What the files of the client share.

#pragma once

#include "channel.h"

struct Tine {
    Channel *channel; // owned
    char *url;        // owned; NULL: made from a channel
    char *token;      // owned; NULL: none
    int64_t retry_ms;
    bool wait_for_server;
    int64_t bus_silence_ms; // after so long without a heartbeat a bus is given up; tests set it …
    int64_t bus_retry_ms;   // … and this: until it is tried again, twice as long each time
    bool makes_no_ids; // for tests: a write without an operation_id is sent without
};

enum {
    RETRY_MS_DEFAULT = 10 * 1000,
    BUS_SILENCE_MS_DEFAULT = 15 * 1000, // three heartbeats
    BUS_RETRY_MS_DEFAULT = 50,
    REPLY_GRACE_MS = 500, // the server's own answer to a timeout comes after it
};
