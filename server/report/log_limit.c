// One mutex serves all limits, because they are used only when something has failed.

#include "report/log_limit.h"

#include <pthread.h>

#include "base/limits.h"

static const int64_t SECOND_NS = 1000000000;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool take(LogLimit *limit, int64_t now_ns, uint64_t *out_left_out)
{
    if (now_ns >= limit->second_until_ns) {
        limit->second_until_ns = now_ns + SECOND_NS;
        limit->count = 0;
    }
    if (limit->count == LOG_SAME_LINES_MAX) {
        limit->left_out++;
        return false;
    }
    limit->count++;
    *out_left_out = limit->left_out;
    limit->left_out = 0;
    return true;
}

bool log_limit_take(LogLimit *limit, int64_t now_ns, uint64_t *out_left_out)
{
    pthread_mutex_lock(&mutex);
    bool may_write = take(limit, now_ns, out_left_out);
    pthread_mutex_unlock(&mutex);
    return may_write;
}
