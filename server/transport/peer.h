// Who may connect to a Unix socket of tined's.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// This user, and root; -1 is a user that is not known. Anybody else is refused, with a line in the
// log that names `pid`.
bool peer_is_allowed(int64_t uid, int64_t pid);
