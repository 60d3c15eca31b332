// The NNG channel: libnng's REQ socket, for every URL that it knows.

#pragma once

#include "channel.h"

// A channel to `url`. Connects in the background, and again when a connection breaks.
// INVALID_ARGUMENT: NNG does not know such a URL.
int channel_nng_open(const char *url, TineStatus *status, Channel **out_channel);
