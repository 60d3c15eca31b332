// Calls for tests of watches.

#include "watch_steps.h"

#include <stdio.h>
#include <string.h>

#include "steps.h"

void watch_closep(TineWatch **watch)
{
    tine_watch_close(*watch);
}

TineWatch *watch_ok(Tine *tine, TineWatchOptions options)
{
    TineWatch *watch = NULL;
    TineStatus status;
    int code = tine_watch(tine, &options, &status, &watch);
    if (code) printf("%s: %s\n", status.reason, status.message);
    CHECK_EQ(code, 0);
    return watch;
}

uint64_t next_ok(TineWatch *watch, char out_type[64])
{
    Tine__V1__Event *event = NULL;
    TineStatus status;
    int code = tine_watch_next(watch, HARNESS_PATIENCE_MS, &status, &event);
    if (code) printf("%s: %s\n", status.reason, status.message);
    CHECK_EQ(code, 0);
    CHECK(event != NULL);
    uint64_t sequence = event->sequence;
    snprintf(out_type, 64, "%s", event->type);
    CHECK_STR(event->instance_id, tine_watch_instance_id(watch));
    tine__v1__event__free_unpacked(event, NULL);
    return sequence;
}

void next_is(TineWatch *watch, uint64_t sequence, const char *type)
{
    char seen[64];
    CHECK_EQ(next_ok(watch, seen), sequence);
    CHECK_STR(seen, type);
}

void next_is_none(TineWatch *watch, int64_t timeout_ms)
{
    Tine__V1__Event *event = (Tine__V1__Event *)(uintptr_t)1;
    CHECK_EQ(tine_watch_next(watch, timeout_ms, NULL, &event), 0);
    CHECK(event == NULL);
}
