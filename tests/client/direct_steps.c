#include "direct_steps.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

Tine *open_direct(const Tined *tined)
{
    return open_with(tined->url, (TineOpenOptions){.flags = TINE_DIRECT_READS});
}

TineClientStats stats_of(Tine *tine)
{
    TineClientStats stats;
    tine_client_stats(tine, &stats);
    return stats;
}

void check_only(Tine *tine, TineFallback fallback, uint64_t count)
{
    TineClientStats stats = stats_of(tine);
    for (int i = 0; i < TINE_FALLBACK_COUNT; i++) {
        if (stats.fallbacks[i])
            printf("%s: %s\n", tine_fallback_name((TineFallback)i), stats.last_why);
        CHECK_EQ(stats.fallbacks[i], (TineFallback)i == fallback ? count : 0);
    }
}

Tine__V1__StatsResponse *server_stats(Tine *tine)
{
    Tine__V1__StatsRequest request = TINE__V1__STATS_REQUEST__INIT;
    Tine__V1__StatsResponse *response = NULL;
    CHECK_EQ(tine_stats(tine, NULL, &request, &response), 0);
    return response;
}

static bool stand_still(void *context, const TineLent *lent)
{
    (void)lent;
    CHECK_EQ(write(*(int *)context, "", 1), 1);
    while (pause() != 0)
        continue;
    return false;
}

pid_t reader_in_a_read(const Tined *tined, const char *session)
{
    int ready[2];
    char byte;
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        Tine *tine = open_direct(tined);
        Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = (char *)(uintptr_t)session;
        (void)tine_read_messages(tine, NULL, &request, stand_still, &ready[1], NULL);
        _exit(1);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

int exit_code_of(pid_t child)
{
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
