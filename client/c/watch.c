// Watching: ListEvents again and again, each one after the last event seen, waiting at the server
// for news. Sequences of one store have no gaps and never repeat, also over restarts; instance_id
// tells when it is another store. So a position is two fields, and there is nothing to lose in
// between.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "client.h"
#include "tine_calls.h"

enum {
    WAIT_MS_MAX_AT_ONCE = 30 * 1000,
    REPLY_MS_MAX = 2000, // beyond the wait, to connect and to answer
    PAGE_EVENTS_MAX = 1000,
    PAUSE_MS_MIN = 20,
    PAUSE_MS_MAX = 1000,
    START_ATTEMPTS_MAX = 5,
};

struct TineWatch {
    Tine *tine;                                   // owned, or borrowed …
    bool is_shared;                               // … when it is the caller's
    char *session_id, *type_prefix, *instance_id; // owned
    uint64_t after_sequence;                      // of the last event given out or left out
    Tine__V1__ListEventsResponse *page;           // owned; NULL: none
    size_t page_index;
    int64_t pause_ms; // after replies that came empty before their time
};

static int connection_open(Tine *tine, TineWatch *watch, TineStatus *status);
static int find_start(TineWatch *watch, TineWatchStart start, TineStatus *status);
static int page_fetch(TineWatch *watch, int64_t wait_ms, TineStatus *status);
static Tine__V1__Event *page_take(TineWatch *watch);
static void pause_if_hurried(TineWatch *watch, int64_t asked_ms, int64_t begun_ns,
                             int64_t until_ns);

static char *copy_of(const char *text)
{
    return strdup(text ? text : "");
}

int tine_watch(Tine *tine, const TineWatchOptions *options, TineStatus *out_status,
               TineWatch **out_watch)
{
    static const TineWatchOptions DEFAULTS = {.start = TINE_WATCH_NEW};
    if (!options) options = &DEFAULTS;
    TineWatch *watch = calloc(1, sizeof(TineWatch));
    if (!watch) return status_out_of_memory(out_status);
    watch->session_id = copy_of(options->session_id);
    watch->type_prefix = copy_of(options->type_prefix);
    watch->instance_id = copy_of(options->instance_id);
    watch->after_sequence = options->after_sequence;
    int code = watch->session_id && watch->type_prefix && watch->instance_id
                   ? connection_open(tine, watch, out_status)
                   : status_out_of_memory(out_status);
    if (!code) code = find_start(watch, options->start, out_status);
    if (code) {
        tine_watch_close(watch);
        return code;
    }
    *out_watch = watch;
    return STATUS_OK;
}

// A call that waits keeps its place among the 64 of a connection: the watch has one of its own. A
// store in this process has none to share.
static int connection_open(Tine *tine, TineWatch *watch, TineStatus *status)
{
    if (!tine->channel->is_remote || !tine->url) {
        watch->tine = tine;
        watch->is_shared = true;
        return STATUS_OK;
    }
    TineOpenOptions options = {
        .token = tine->token, .retry_ms = tine->retry_ms, .wait_for_server = true};
    return tine_open_with(tine->url, &options, status, &watch->tine);
}

static int stats_read(TineWatch *watch, TineStatus *status, uint64_t *out_oldest,
                      uint64_t *out_newest)
{
    Tine__V1__StatsRequest request = TINE__V1__STATS_REQUEST__INIT;
    Tine__V1__StatsResponse *stats;
    TineCallOptions options = {.out_status = status};
    int code = tine_stats(watch->tine, &options, &request, &stats);
    if (code) return code;
    *out_oldest = stats->oldest_event_sequence;
    *out_newest = stats->newest_event_sequence;
    tine__v1__stats_response__free_unpacked(stats, NULL);
    return STATUS_OK;
}

// The first page names the store, and says whether the position is one of its. While the oldest
// event is being pruned it may be gone by the time it is asked for.
static int find_start(TineWatch *watch, TineWatchStart start, TineStatus *status)
{
    TineStatus own;
    if (!status) status = &own;
    int code;
    unsigned attempts = 0;
    do {
        if (start != TINE_WATCH_AFTER) {
            uint64_t oldest, newest;
            code = stats_read(watch, status, &oldest, &newest);
            if (code) return code;
            watch->after_sequence = newest;
            if (start == TINE_WATCH_OLDEST && oldest > 0) watch->after_sequence = oldest - 1;
        }
        code = page_fetch(watch, 0, status);
        attempts++;
    } while (code == STATUS_OUT_OF_RANGE && start != TINE_WATCH_AFTER &&
             attempts < START_ATTEMPTS_MAX);
    return code;
}

int tine_watch_next(TineWatch *watch, int64_t timeout_ms, TineStatus *out_status,
                    Tine__V1__Event **out_event)
{
    int64_t until_ns = INT64_MAX;
    if (timeout_ms >= 0 && timeout_ms < INT32_MAX) {
        until_ns = clock_monotonic_ns() + timeout_ms * 1000000;
    }
    for (bool is_first = true;; is_first = false) {
        Tine__V1__Event *event = page_take(watch);
        if (event || (!is_first && time_is_past(until_ns))) {
            status_set(out_status, STATUS_OK, "", "");
            *out_event = event;
            return STATUS_OK;
        }
        int64_t wait_ms = channel_poll_ms(until_ns, WAIT_MS_MAX_AT_ONCE);
        int64_t begun_ns = clock_monotonic_ns();
        int code = page_fetch(watch, wait_ms, out_status);
        if (code) return code;
        if (watch->page->n_events == 0 && !watch->page->more) {
            pause_if_hurried(watch, wait_ms, begun_ns, until_ns);
        }
    }
}

// Replaces the page, which was given out whole.
static int page_fetch(TineWatch *watch, int64_t wait_ms, TineStatus *status)
{
    Tine__V1__ListEventsRequest request = TINE__V1__LIST_EVENTS_REQUEST__INIT;
    request.after_sequence = watch->after_sequence;
    request.session_id = watch->session_id;
    request.instance_id = watch->instance_id;
    request.limit = PAGE_EVENTS_MAX;
    request.wait_ms = (uint32_t)wait_ms;
    Tine__V1__ListEventsResponse *page;
    TineCallOptions options = {.timeout_ms = wait_ms + REPLY_MS_MAX, .out_status = status};
    int code = tine_list_events(watch->tine, &options, &request, &page);
    if (code) return code;
    if (!*watch->instance_id) {
        char *instance_id = strdup(page->instance_id);
        if (!instance_id) {
            tine__v1__list_events_response__free_unpacked(page, NULL);
            return status_out_of_memory(status);
        }
        free(watch->instance_id);
        watch->instance_id = instance_id;
    }
    if (watch->page) tine__v1__list_events_response__free_unpacked(watch->page, NULL);
    watch->page = page;
    watch->page_index = 0;
    if (page->n_events > 0) watch->pause_ms = 0;
    if (page->n_events == 0) watch->after_sequence = page->next_after_sequence;
    return STATUS_OK;
}

// The next event of the page that is wanted; NULL when there is none.
static Tine__V1__Event *page_take(TineWatch *watch)
{
    Tine__V1__ListEventsResponse *page = watch->page;
    size_t prefix_size = strlen(watch->type_prefix);
    while (page && watch->page_index < page->n_events) {
        Tine__V1__Event **place = &page->events[watch->page_index++];
        bool is_last = watch->page_index == page->n_events;
        watch->after_sequence = is_last ? page->next_after_sequence : (*place)->sequence;
        if (strncmp((*place)->type, watch->type_prefix, prefix_size) != 0) continue;
        Tine__V1__Event *event = *place;
        *place = NULL;
        return event;
    }
    return NULL;
}

// A server with too many calls that wait answers at once, with nothing: it is not to be asked in
// a loop. So does one that is about to stop.
static void pause_if_hurried(TineWatch *watch, int64_t asked_ms, int64_t begun_ns, int64_t until_ns)
{
    if (clock_monotonic_ns() - begun_ns > asked_ms * 1000000 / 2) return;
    watch->pause_ms = watch->pause_ms == 0 ? PAUSE_MS_MIN : watch->pause_ms * 2;
    if (watch->pause_ms > PAUSE_MS_MAX) watch->pause_ms = PAUSE_MS_MAX;
    int ms = channel_poll_ms(until_ns, (int)watch->pause_ms);
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

uint64_t tine_watch_sequence(const TineWatch *watch)
{
    return watch->after_sequence;
}

const char *tine_watch_instance_id(const TineWatch *watch)
{
    return watch->instance_id;
}

void tine_watch_close(TineWatch *watch)
{
    if (!watch) return;
    if (watch->page) tine__v1__list_events_response__free_unpacked(watch->page, NULL);
    if (!watch->is_shared) tine_close(watch->tine);
    free(watch->session_id);
    free(watch->type_prefix);
    free(watch->instance_id);
    free(watch);
}
