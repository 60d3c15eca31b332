// The SP channel: our own REQ peer on a Unix socket, without libnng.

#pragma once

#include "channel.h"

// A channel to the socket at `path`, which it copies. Connects with the first call, and again
// with the first one after a connection broke. INVALID_ARGUMENT: no path, or one over 107 bytes.
int channel_sp_open(const char *path, TineStatus *status, Channel **out_channel);
