// Paths of sockets: of the one for requests, which a user names, and of the one for events beside
// it.

#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "report/error_detail.h"

enum { SOCKET_PATH_BYTES_MAX = 107 }; // what an address of the kernel holds

// Writes the path of the event socket that belongs to a request socket: a final ".sock" becomes
// ".events", to any other path ".events" is added. False: it would be over SOCKET_PATH_BYTES_MAX.
bool socket_path_of_events(const char *path, char out[SOCKET_PATH_BYTES_MAX + 1]);

// Takes away the socket that a process which is gone left at the path. Whether one still listens
// there is for the caller to know. ERROR_IO: what is there is no socket, or cannot be removed.
MUST_USE Error socket_path_clear(const char *path, ErrorDetail *detail);
