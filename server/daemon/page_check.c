// Page check: one thread, one walk.

#include "daemon/page_check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/thread.h"
#include "report/log.h"

enum { LINES_MAX = 100 }; // of findings in the log

struct PageCheck {
    Engine *engine; // borrowed
    pthread_t thread;
    atomic_bool is_cancelled;
    unsigned lines;
};

static void log_finding(void *context, const PageFinding *finding)
{
    PageCheck *check = context;
    if (check->lines++ >= LINES_MAX) return;
    log_write(LOG_ERROR, "a page is damaged", "finding=\"%s\"", finding->text);
}

static void log_result(const PageWalkResult *result, int64_t took_ms)
{
    log_write(result->finding_count > 0 ? LOG_ERROR : LOG_INFO,
              result->finding_count > 0 ? "the store is damaged; see tine check"
                                        : "all pages are sound",
              "pages=%" PRIu64 " findings=%" PRIu64 " took_ms=%" PRId64, result->last_page + 1,
              result->finding_count, took_ms);
}

static void *run(void *context)
{
    PageCheck *check = context;
    ErrorDetail detail = {{0}};
    PageWalkResult result;
    PageWalkOptions options = {
        .found = log_finding,
        .context = check,
        .is_cancelled = &check->is_cancelled,
    };
    int64_t begun_ns = clock_monotonic_ns();
    Error error = store_walk(engine_store(check->engine), &options, &detail, &result);
    if (error) {
        log_write(LOG_ERROR, "the pages could not be walked", "error=%s detail=\"%s\"",
                  error_name(error), detail.text);
    } else if (!result.is_cancelled) {
        log_result(&result, (clock_monotonic_ns() - begun_ns) / 1000000);
        engine_resume_purges(check->engine);
    }
    return NULL;
}

Error page_check_start(Engine *engine, ErrorDetail *detail, PageCheck **out)
{
    *out = NULL;
    if (!store_is_walk_due(engine_store(engine))) return ERROR_NONE;
    PageCheck *check = calloc(1, sizeof(*check));
    if (!check) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to walk the pages");
    check->engine = engine;
    Error error = thread_start(&check->thread, run, check, "walk the pages", detail);
    if (error) {
        free(check);
        return error;
    }
    *out = check;
    return ERROR_NONE;
}

void page_check_stop(PageCheck *check)
{
    if (!check) return;
    atomic_store(&check->is_cancelled, true);
    pthread_join(check->thread, NULL);
    free(check);
}
