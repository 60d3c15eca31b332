// Decides by the user of the process.

#include "transport/peer.h"

#include <unistd.h>

#include "report/log.h"

bool peer_is_allowed(int64_t uid, int64_t pid)
{
    if (uid == (int64_t)geteuid() || uid == 0) return true;
    log_write(LOG_WARNING, "connection refused: another user's", "uid=%lld pid=%lld",
              (long long)uid, (long long)pid);
    return false;
}
