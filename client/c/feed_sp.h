// The feed of a daemon: our own SUB peer on a Unix socket, without libnng.

#pragma once

#include "feed.h"

// Subscribes to the bus of the daemon whose requests go to the socket at `path`: it is beside it
// (os/socket_path.h). Waits for nothing. NULL when there is no bus or no memory; else the
// caller's.
Feed *feed_sp_open(const char *path);
