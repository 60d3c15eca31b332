// Connecting to the sockets of tined: the REP socket for calls and the PUB socket of the bus.

#pragma once

#include <stdint.h>

enum { SP_WHY_BYTES = 160 };

// Connects to a REP socket and exchanges hellos, until a monotonic time at the latest. Returns the
// file descriptor; or a negative errno, and in `why` the end of a sentence: "No such file or
// directory". -ENOENT and -ECONNREFUSED say that nobody listens; -EPROTO, that a hello failed.
int sp_dial(const char *path, int64_t deadline_ns, char why[SP_WHY_BYTES]);

// Connects to a PUB socket and sends the hello of a SUB socket, without waiting. The first bytes
// that come are the other side's hello. Returns the file descriptor, or -1.
int sp_subscribe(const char *path);
