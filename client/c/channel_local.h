// The local channel: an engine in this process, without a socket.

#pragma once

#include "channel.h"
#include "rpc/engine.h"

// Opens the store in a directory, with options behind a '?'. Returns 0, or a code that `status`
// explains. A child of fork may only close the channel.
int channel_local_open(const char *directory, TineStatus *status, Channel **out_channel);

// Opens an ephemeral store. Its directory is removed before this function returns.
int channel_local_open_memory(TineStatus *status, Channel **out_channel);

// Makes a channel to an engine, which the caller owns and must close after the channel.
int channel_local_borrow(Engine *engine, Channel **out_channel);
