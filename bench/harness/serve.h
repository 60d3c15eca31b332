// The servers that this program is itself: `tine-bench --serve KIND SOCKET ARGUMENT` (peers.h).

#pragma once

// Serves until it is killed; returns if there is no such kind.
void serve(const char *kind, const char *socket, const char *argument);
