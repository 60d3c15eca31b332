// Paths of tined's files: the defaults by the XDG rules, and whether a path can be used.

#pragma once

#include "base/error.h"
#include "os/socket_path.h"
#include "report/error_detail.h"

// Writes $XDG_DATA_HOME/tine, or ~/.local/share/tine. Returns ERROR_INVALID_ARGUMENT if there is no
// home directory, or the path is too long.
MUST_USE Error path_data_default(char *out, size_t out_bytes, ErrorDetail *detail);

// Writes $XDG_RUNTIME_DIR/tine/tine.sock, or /tmp/tine-UID/tine.sock. Returns
// ERROR_INVALID_ARGUMENT if the path is too long.
MUST_USE Error path_socket_default(char *out, size_t out_bytes, ErrorDetail *detail);

// Checks that a directory exists and can be written to, or could be made. Makes nothing. Returns
// ERROR_IO. `out_existing` (PATH_BYTES_MAX) is the part of the path that exists.
MUST_USE Error path_check_directory(const char *path, ErrorDetail *detail, char *out_existing);

// Checks that a socket can be made at a path: nothing is there, or a socket. Returns ERROR_IO.
MUST_USE Error path_check_socket(const char *path, ErrorDetail *detail);

// Checks that a file can be opened for writing, or made. Makes nothing. Returns ERROR_IO.
MUST_USE Error path_check_file(const char *path, ErrorDetail *detail);

// Makes a directory for a store that disappears with its process, in memory if possible. Returns
// ERROR_IO.
MUST_USE Error path_make_ephemeral(char *out, size_t out_bytes, ErrorDetail *detail);
