// Watching: the bus for speed, ListEvents for certainty.
//
// ListEvents misses nothing: sequences of one store have no gaps and never repeat, even after
// restarts, and instance_id shows another store. So two fields are the position of a watch. The bus
// is fast but may lose a message, a connection, or what was sent before the server knew the
// subscriber. So the watch subscribes, then lists, then takes from the bus what follows its
// position. It drops events at or before its position, and lists again where an event does not
// follow it. Until the first message of a subscription the watch cannot know whether the server has
// the subscriber, so until then it lists now and again. Without a bus it lists, and the server
// holds the call until there is news.

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "client.h"
#include "os/clock.h"
#include "os/process.h"
#include "status.h"
#include "tine_calls.h"
#include "wait.h"
#include "wire/bus_message.h"

enum {
    WAIT_MS_MAX_AT_ONCE = 30 * 1000,
    REPLY_MS_MAX = 2000, // to connect and to answer, after the wait
    PAGE_EVENTS_MAX = 1000,
    PAUSE_MS_MIN = 20,
    PAUSE_MS_MAX = 1000,
    START_ATTEMPTS_MAX = 5,
    FIRST_MESSAGE_MS_MAX = 100, // then a watch begins without the first message
    MESSAGES_LATE_MAX = 1000,   // taken from the bus after the time is up
    UNSURE_MS_MIN = 5,          // between two listings before the first message …
    UNSURE_MS_MAX = 160,        // … twice as long each time
    SUBSCRIBE_MS_MAX = 30 * 1000,
};

struct TineWatch {
    Tine *tine;                                   // owned, or borrowed …
    bool is_shared;                               // … if it is the caller's
    char *session_id, *type_prefix, *instance_id; // owned
    char *topic;                                  // owned: how topics of the session begin
    uint64_t after_sequence;                      // of the last event returned or skipped
    Tine__V1__ListEventsResponse *page;           // owned; NULL: none
    size_t page_index;
    int64_t pause_ms; // after empty replies that came too early

    Feed *feed;           // owned; NULL: not subscribed
    unsigned generation;  // of the process that subscribed
    bool is_behind;       // there may be events that do not come by the bus: list them
    uint64_t told_newest; // the newest sequence that the bus named when there was a gap
    int64_t heard_ns;     // when the last message came, or the subscription was made
    int64_t unsure_ms;    // the next pause between two listings
    unsigned failures;    // of subscriptions, in a row
    int64_t subscribe_after_ns;
};

static int connection_open(Tine *tine, TineWatch *watch, TineStatus *status);
static int find_start(TineWatch *watch, TineWatchStart start, TineStatus *status);
static Tine__V1__Event *page_take(TineWatch *watch);
static void feed_keep(TineWatch *watch);
static void feed_drop(TineWatch *watch);
static Tine__V1__Event *feed_take(TineWatch *watch, int64_t until_ns);
static Tine__V1__Event *message_take(TineWatch *watch, Slice message);
static int page_fetch(TineWatch *watch, int64_t until_ns, TineStatus *status);
static void pause_if_hurried(TineWatch *watch, int64_t asked_ms, int64_t begun_ns,
                             int64_t until_ns);

// Returns how topics of a session's events begin, "session/<id>/", or "" for all sessions; NULL if
// there is no memory.
static char *topic_of(const char *session_id)
{
    char topic[BUS_TOPIC_BYTES_MAX] = "";
    if (*session_id) (void)bus_topic_write(slice_of(session_id), slice_of(""), topic);
    return strdup(topic);
}

static bool texts_copy(TineWatch *watch, const TineWatchOptions *options)
{
    watch->session_id = strdup(options->session_id ? options->session_id : "");
    watch->type_prefix = strdup(options->type_prefix ? options->type_prefix : "");
    watch->instance_id = strdup(options->instance_id ? options->instance_id : "");
    watch->topic = watch->session_id ? topic_of(watch->session_id) : NULL;
    return watch->topic && watch->type_prefix && watch->instance_id;
}

int tine_watch(Tine *tine, const TineWatchOptions *options, TineStatus *out_status,
               TineWatch **out_watch)
{
    static const TineWatchOptions DEFAULTS = {.start = TINE_WATCH_NEW};
    if (!options) options = &DEFAULTS;
    TineWatch *watch = calloc(1, sizeof(TineWatch));
    if (!watch) return status_out_of_memory(out_status);
    watch->after_sequence = options->after_sequence;
    int code = texts_copy(watch, options) ? connection_open(tine, watch, out_status)
                                          : status_out_of_memory(out_status);
    if (!code) {
        // Drops the first message, which was sent before the watch began.
        Slice message;
        int64_t until_ns = clock_monotonic_ns() + FIRST_MESSAGE_MS_MAX * INT64_C(1000000);
        feed_keep(watch);
        if (watch->feed && !watch->feed->is_live) {
            if (watch->feed->next(watch->feed, until_ns, &message) == FEED_BROKEN) feed_drop(watch);
        }
        code = find_start(watch, options->start, out_status);
    }
    if (code) {
        tine_watch_close(watch);
        return code;
    }
    *out_watch = watch;
    return STATUS_OK;
}

// Opens a connection for the watch, because a call that waits is one of the 64 calls in flight of
// its connection. A store in this process needs none.
static int connection_open(Tine *tine, TineWatch *watch, TineStatus *status)
{
    if (!tine->channel->is_remote || !tine->url) {
        watch->tine = tine;
        watch->is_shared = true;
        return STATUS_OK;
    }
    TineOpenOptions options = {
        .token = tine->token, .retry_ms = tine->retry_ms, .wait_for_server = true};
    int code = tine_open_with(tine->url, &options, status, &watch->tine);
    if (code) return code;
    watch->tine->bus_silence_ms = tine->bus_silence_ms;
    watch->tine->bus_retry_ms = tine->bus_retry_ms;
    return STATUS_OK;
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
        code = page_fetch(watch, /* until_ns= */ 0, status);
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
    Tine__V1__Event *event;
    do {
        event = page_take(watch);
        if (event) break;
        feed_keep(watch);
        if (watch->feed && !watch->is_behind) event = feed_take(watch, until_ns);
        if (!event && (!watch->feed || watch->is_behind)) {
            int code = page_fetch(watch, until_ns, out_status);
            if (code) return code;
            event = page_take(watch);
        }
    } while (!event && !time_is_past(until_ns));
    status_set(out_status, STATUS_OK, "", "");
    *out_event = event;
    return STATUS_OK;
}

// Takes the next wanted event of the page. Returns NULL if there is none.
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

// Subscribes if it is time to. Afterwards everything must be listed once.
static void feed_keep(TineWatch *watch)
{
    Channel *channel = watch->tine->channel;
    unsigned generation = process_generation();
    if (watch->feed && watch->generation != generation) feed_drop(watch); // the parent reads it
    if (watch->feed || !channel->feed_open || !time_is_past(watch->subscribe_after_ns)) return;
    watch->is_behind = true;
    watch->heard_ns = clock_monotonic_ns();
    watch->unsure_ms = UNSURE_MS_MIN;
    watch->generation = generation;
    watch->feed = channel->feed_open(channel);
    if (!watch->feed) feed_drop(watch);
}

// Goes on without a bus, and tries to subscribe again later.
static void feed_drop(TineWatch *watch)
{
    if (watch->feed) watch->feed->close(watch->feed);
    watch->feed = NULL;
    watch->told_newest = 0;
    int64_t ms = watch->tine->bus_retry_ms;
    for (unsigned i = 0; i < watch->failures && ms < SUBSCRIBE_MS_MAX; i++)
        ms *= 2;
    if (ms > SUBSCRIBE_MS_MAX) ms = SUBSCRIBE_MS_MAX;
    if (watch->failures < UINT8_MAX) watch->failures++;
    watch->subscribe_after_ns = clock_monotonic_ns() + ms * 1000000;
}

// Takes the next wanted event from the bus. Returns NULL if the time is up, or the watch is behind
// or without a bus.
static Tine__V1__Event *feed_take(TineWatch *watch, int64_t until_ns)
{
    Tine__V1__Event *event = NULL;
    int64_t silence_ns = watch->tine->bus_silence_ms * INT64_C(1000000);
    unsigned count = 0; // of messages, to return in time even if many unwanted ones come
    while (!event && watch->feed && !watch->is_behind) {
        bool is_unsure = !watch->feed->is_live;
        int64_t silent_at_ns =
            watch->feed->has_heartbeats ? watch->heard_ns + silence_ns : INT64_MAX;
        int64_t wait_until_ns = silent_at_ns;
        if (is_unsure) {
            int64_t list_ns = clock_monotonic_ns() + watch->unsure_ms * 1000000;
            if (list_ns < wait_until_ns) wait_until_ns = list_ns;
        }
        if (until_ns < wait_until_ns) wait_until_ns = until_ns;
        Slice message;
        FeedResult result = watch->feed->next(watch->feed, wait_until_ns, &message);
        if (result == FEED_MESSAGE) {
            watch->heard_ns = clock_monotonic_ns();
            if (!is_unsure) watch->failures = 0; // one message alone does not show a good bus
            event = message_take(watch, message);
            if (++count >= MESSAGES_LATE_MAX && time_is_past(until_ns)) break;
        } else if (result == FEED_LOST) {
            watch->is_behind = true;
        } else if (result == FEED_BROKEN || time_is_past(silent_at_ns)) {
            feed_drop(watch);
        } else {
            watch->is_behind = is_unsure;
            if (is_unsure && watch->unsure_ms < UNSURE_MS_MAX) watch->unsure_ms *= 2;
            if (time_is_past(until_ns)) break;
        }
    }
    return event;
}

// Returns whether an event with a sequence is the next one of the watch. An event names the
// previous event of its session, and there is none of that session in between. After
// "session.purged" ListEvents decides what the watch gets.
static bool is_next(const TineWatch *watch, const BusMessage *told, bool is_mine)
{
    bool is_of_session = *watch->topic && is_mine;
    if (is_of_session && slice_equal(told->type, slice_of("session.purged"))) return false;
    if (told->sequence == watch->after_sequence + 1) return true;
    uint64_t previous = told->previous_session_sequence;
    return is_of_session && previous > 0 && previous <= watch->after_sequence;
}

// Notes a gap up to the sequence that the bus named.
static void fall_behind(TineWatch *watch, uint64_t told_newest)
{
    watch->is_behind = true;
    watch->told_newest = told_newest;
}

// Returns the event of a message of the bus if the watch wants it now. Every message is read,
// because events of other sessions move the position too.
static Tine__V1__Event *message_take(TineWatch *watch, Slice message)
{
    BusMessage told;
    if (!bus_message_read(message, &told)) {
        feed_drop(watch);
        return NULL;
    }
    bool is_heartbeat = slice_equal(told.topic, slice_of(BUS_TOPIC_HEARTBEAT));
    bool is_mine = slice_starts_with(told.topic, slice_of(watch->topic)) && !is_heartbeat;

    if (!slice_equal(told.instance_id, slice_of(watch->instance_id))) {
        fall_behind(watch, UINT64_MAX);
        return NULL;
    }
    if (is_heartbeat) {
        if (told.sequence > watch->after_sequence) fall_behind(watch, told.sequence);
        return NULL;
    }
    bool is_kept = told.sequence > 0;
    if (is_kept && told.sequence <= watch->after_sequence) return NULL; // listed already
    if (is_kept && !is_next(watch, &told, is_mine)) {
        if (is_mine) fall_behind(watch, told.sequence);
        return NULL;
    }
    Tine__V1__Event *event = NULL;
    if (is_mine && slice_starts_with(told.type, slice_of(watch->type_prefix))) {
        event = tine__v1__event__unpack(NULL, told.event.size, told.event.bytes);
        if (!event) {
            feed_drop(watch);
            return NULL;
        }
    }
    if (is_kept) watch->after_sequence = told.sequence;
    return event;
}

// Replaces the page, all of whose events were taken.
static void page_replace(TineWatch *watch, Tine__V1__ListEventsResponse *page)
{
    if (watch->page) tine__v1__list_events_response__free_unpacked(watch->page, NULL);
    watch->page = page;
    watch->page_index = 0;
    if (page->n_events > 0) watch->pause_ms = 0;
    if (page->n_events == 0) watch->after_sequence = page->next_after_sequence;
    if (page->more) return;
    watch->is_behind = false;
    // If the bus named events that the store does not have, it belongs to another store.
    if (watch->feed && page->newest_sequence < watch->told_newest) feed_drop(watch);
    watch->told_newest = 0;
}

// Lists what comes after the position. Waits for news only without a bus.
static int page_fetch(TineWatch *watch, int64_t until_ns, TineStatus *status)
{
    int64_t left_ms = poll_ms_until(until_ns, WAIT_MS_MAX_AT_ONCE);
    int64_t wait_ms = watch->feed ? 0 : left_ms;
    if (wait_ms > 0 && watch->tine->channel->feed_open) {
        wait_ms = poll_ms_until(watch->subscribe_after_ns, (int)wait_ms);
    }
    Tine__V1__ListEventsRequest request = TINE__V1__LIST_EVENTS_REQUEST__INIT;
    request.after_sequence = watch->after_sequence;
    request.session_id = watch->session_id;
    request.instance_id = watch->instance_id;
    request.limit = PAGE_EVENTS_MAX;
    request.wait_ms = (uint32_t)wait_ms;
    Tine__V1__ListEventsResponse *page;
    int64_t begun_ns = clock_monotonic_ns();
    TineCallOptions options = {.timeout_ms = left_ms + REPLY_MS_MAX, .out_status = status};
    int code = tine_list_events(watch->tine, &options, &request, &page);
    if (code) {
        watch->failures = 0; // the next server may have a bus
        return code;
    }
    if (!*watch->instance_id) {
        char *instance_id = strdup(page->instance_id);
        if (!instance_id) {
            tine__v1__list_events_response__free_unpacked(page, NULL);
            return status_out_of_memory(status);
        }
        free(watch->instance_id);
        watch->instance_id = instance_id;
    }
    page_replace(watch, page);
    if (page->n_events == 0 && !page->more && wait_ms > 0) {
        pause_if_hurried(watch, wait_ms, begun_ns, until_ns);
    }
    return STATUS_OK;
}

// Pauses if an empty reply came too early: a server with too many waiting calls, or one that is
// about to stop, answers at once, and must not be asked in a loop.
static void pause_if_hurried(TineWatch *watch, int64_t asked_ms, int64_t begun_ns, int64_t until_ns)
{
    if (clock_monotonic_ns() - begun_ns > asked_ms * 1000000 / 2) return;
    watch->pause_ms = watch->pause_ms == 0 ? PAUSE_MS_MIN : watch->pause_ms * 2;
    if (watch->pause_ms > PAUSE_MS_MAX) watch->pause_ms = PAUSE_MS_MAX;
    int ms = poll_ms_until(until_ns, (int)watch->pause_ms);
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
    if (watch->feed) watch->feed->close(watch->feed);
    if (!watch->is_shared) tine_close(watch->tine);
    free(watch->session_id);
    free(watch->type_prefix);
    free(watch->instance_id);
    free(watch->topic);
    free(watch);
}
