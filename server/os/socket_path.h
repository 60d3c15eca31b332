// Paths of sockets: of the one for requests, which a user names, and of the one for events beside
// it.

#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "report/error_detail.h"

enum { SOCKET_PATH_BYTES_MAX = 107 }; // what an address of the kernel holds

// Writes the path of the event socket that belongs to a request socket: replaces a final ".sock" by
// ".events", or appends ".events". Returns false if it would be over SOCKET_PATH_BYTES_MAX.
bool socket_path_of_events(const char *path, char out[SOCKET_PATH_BYTES_MAX + 1]);

// Removes the socket that a dead process left at the path. The caller must know that no process
// listens there. ERROR_IO: the file is not a socket or cannot be removed.
MUST_USE Error socket_path_clear(const char *path, ErrorDetail *detail);
