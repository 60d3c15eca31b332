// The feed of a daemon: our own SUB socket, without libnng.

#pragma once

#include "feed.h"

// Subscribes to the bus of the daemon that listens at `path`; its socket is beside that one
// (os/socket_path.h). Does not wait. Returns NULL if there is no bus or no memory. The caller
// closes the feed.
Feed *feed_sp_open(const char *path);
