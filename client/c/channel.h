// Channels: how a client reaches a store. libtine is a channel and the code above it.

#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "tine.h"

// Sends one encoded Request and receives the encoded Response into `out_response`, whose memory is
// the caller's. Returns 0, or the code of a failure that the server knows nothing of.
typedef struct Channel {
    int (*call)(struct Channel *channel, Slice request, Buffer *out_response, TineStatus *status);
    void (*close)(struct Channel *channel);
} Channel;

// Makes a client of a channel, which it takes.
int tine_from_channel(Channel *channel, Tine **out_tine);

// Fills a status, and returns its code. `status` may be NULL.
int status_set(TineStatus *status, int code, const char *reason, const char *message);
