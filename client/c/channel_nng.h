// The NNG channel: libnng's REQ socket, for every URL that libnng knows.

#pragma once

#include "channel.h"

// Makes a channel to `url`. It connects in the background, and again when a connection breaks.
// Returns 0; INVALID_ARGUMENT if libnng does not know such a URL; RESOURCE_EXHAUSTED.
int channel_nng_open(const char *url, TineStatus *status, Channel **out_channel);
