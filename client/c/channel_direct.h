// The direct channel: runs reads in this process on the server's own store, and passes everything
// else to the channel below it.

#pragma once

#include "channel.h"
#include "store/store.h"

// Makes a channel above `calls`, which it takes even on failure. The first read opens the store.
// Returns 0 or RESOURCE_EXHAUSTED.
int channel_direct_open(Channel *calls, TineStatus *status, Channel **out_channel);

// Fills the part of a client's statistics that is about direct reads.
void channel_direct_stats(Channel *channel, TineClientStats *out_stats);

// For tests, before the first read: sets the clock of reads, and a map that is smaller than the
// server's until the store outgrows it (0: as large as the server's).
void channel_direct_for_test(Channel *channel, Clock clock, size_t map_bytes);
