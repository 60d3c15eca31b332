// Decides which processes may connect to a Unix socket of tined.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// Returns whether `uid` is this user or root; -1 is an unknown user. If not, logs a line that names
// `pid`.
bool peer_is_allowed(int64_t uid, int64_t pid);
