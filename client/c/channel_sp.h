// The SP channel: our own REQ peer on a Unix socket, without libnng.

#pragma once

#include "channel.h"

// Opens a channel to the socket at `path`, which has at most SOCKET_PATH_BYTES_MAX and is copied.
// It connects with the first call, and again with the first call after a connection broke. Returns
// 0, or RESOURCE_EXHAUSTED.
int channel_sp_open(const char *path, TineStatus *status, Channel **out_channel);
