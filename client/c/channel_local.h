// The local channel: an engine in this process, no socket between.

#pragma once

#include "channel.h"
#include "rpc/engine.h"

// Opens the store in a directory. Returns 0, or the code that `status` explains. A child of fork
// may only close it.
int channel_local_open(const char *directory, TineStatus *status, Channel **out_channel);

// Opens an ephemeral store whose directory is gone from the file system before this returns.
int channel_local_open_memory(TineStatus *status, Channel **out_channel);

// A channel to an engine that somebody else owns and closes after it.
int channel_local_borrow(Engine *engine, Channel **out_channel);
