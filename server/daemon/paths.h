// Paths: where things lie, by the XDG rules, and the directories that hold them.

#pragma once

#include "base/error.h"
#include "os/socket_path.h"
#include "report/error_detail.h"

// $XDG_DATA_HOME/tine, or ~/.local/share/tine. ERROR_INVALID_ARGUMENT: no home, or too long.
MUST_USE Error path_data_default(char *out, size_t out_bytes, ErrorDetail *detail);

// $XDG_RUNTIME_DIR/tine/tine.sock, or /tmp/tine-UID/tine.sock. ERROR_INVALID_ARGUMENT: too long.
MUST_USE Error path_socket_default(char *out, size_t out_bytes, ErrorDetail *detail);

// Whether a directory is there and can be written to, or could be made. Touches nothing. ERROR_IO.
// `out_existing` (PATH_BYTES_MAX) is the part of the path that is there.
MUST_USE Error path_check_directory(const char *path, ErrorDetail *detail, char *out_existing);

// Whether a socket can be made at a path: nothing is there, or an old socket. ERROR_IO.
MUST_USE Error path_check_socket(const char *path, ErrorDetail *detail);

// Whether a file can be opened for writing, or made. Touches nothing. ERROR_IO.
MUST_USE Error path_check_file(const char *path, ErrorDetail *detail);

// Makes a directory for a store that is gone with its process: in memory if it can be. ERROR_IO.
MUST_USE Error path_make_ephemeral(char *out, size_t out_bytes, ErrorDetail *detail);
