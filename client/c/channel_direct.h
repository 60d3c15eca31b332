// Direct reads: a channel that runs reads in this process, on the server's own store, and gives
// everything else to the channel below it.

#pragma once

#include "channel.h"
#include "store/store.h"

// Takes `calls`, whatever the outcome. Opens nothing yet: the first read does.
int channel_direct_open(Channel *calls, TineStatus *status, Channel **out_channel);

// Fills what a client's statistics have of direct reads.
void channel_direct_stats(Channel *channel, TineClientStats *out_stats);

// For tests, before the first read: the clock that reads go by, and a map smaller than the
// server's (0: as large), until it is outgrown.
void channel_direct_for_test(Channel *channel, Clock clock, size_t map_bytes);
