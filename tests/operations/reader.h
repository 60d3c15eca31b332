// A process that makes the test's reads, directly. The test has the engine open itself, and one
// process cannot open a store twice.

#pragma once

#include "channel.h"
#include "os/clock.h"

// Starts it, once, while the test has one thread. `clock` is in shared memory.
void reader_start(Clock clock);

// A channel that sends reads to it, and the rest to `calls`, which it takes. The server is at the
// socket `path`, which the process can open as well. When the channel is closed, every read must
// have run in that process but for those that are about the server or wait.
Channel *reader_channel(Channel *calls, const char *path);
