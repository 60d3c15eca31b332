// Draws frames. Rates and latencies come from the difference of two samples.

#include "top_frame.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "os/clock.h"

enum {
    SAMPLE_TIMEOUT_MS = 2000,
    ACTIVE_MS = 5 * 60 * 1000,
    SESSIONS_MAX = 200,
    LINE_BYTES_MAX = 1024,
    METHODS_MAX = 128,
    METHODS_SHOWN = 8,
    BUCKETS_MAX = 64,
};

typedef struct MethodRate {
    const char *name;
    uint64_t calls, errors, latency[BUCKETS_MAX];
} MethodRate;

int top_sample(Cli *cli, TopSample *out)
{
    TineCallOptions options = cli->call;
    options.timeout_ms = SAMPLE_TIMEOUT_MS;
    options.no_retry = true;
    StatsRequest stats = STATS_REQUEST__INIT;
    HealthRequest health = HEALTH_REQUEST__INIT;
    ListSessionsRequest sessions = LIST_SESSIONS_REQUEST__INIT;
    sessions.order = SESSION_ORDER_LAST_ACTIVE;
    sessions.active_since = cli_now_ms() - ACTIVE_MS;
    sessions.limit = SESSIONS_MAX;
    *out = (TopSample){0};
    int code = tine_stats(cli->tine, &options, &stats, &out->stats);
    if (!code) code = tine_health(cli->tine, &options, &health, &out->health);
    if (!code) code = tine_list_sessions(cli->tine, &options, &sessions, &out->sessions);
    out->taken_ns = clock_monotonic_ns();
    if (code) top_sample_free(out);
    return code;
}

void top_sample_free(TopSample *sample)
{
    message_freep(&sample->stats);
    message_freep(&sample->health);
    message_freep(&sample->sessions);
    *sample = (TopSample){0};
}

// Prints one line, cut to the width. Prints nothing below the last row.
static void line(TopFrame *frame, bool is_title, const char *format, ...) PRINTF_LIKE(3, 4);

static void line(TopFrame *frame, bool is_title, const char *format, ...)
{
    if (frame->is_live && frame->rows <= 1) return;
    frame->rows--;
    char text[LINE_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    int columns = frame->is_live ? frame->columns : -1;
    print(frame->out, is_title ? PRINT_BOLD "%.*s" PRINT_NORMAL : "%.*s", columns, text);
    print(frame->out, frame->is_live ? "\033[K\n" : "\n");
}

static double per_second(uint64_t now, uint64_t before, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static const MethodStats *method_of(const StatsResponse *stats, const char *name)
{
    for (size_t i = 0; stats && i < stats->n_methods; i++) {
        if (strcmp(stats->methods[i]->name, name) == 0) return stats->methods[i];
    }
    return NULL;
}

// Returns what a method did since the previous sample.
static MethodRate rate_of(const MethodStats *now, const MethodStats *before)
{
    MethodRate rate = {now->name, now->calls, now->errors, {0}};
    // A server that was restarted counts from 0 again.
    if (before && before->calls > now->calls) before = NULL;
    if (before) {
        rate.calls -= before->calls;
        rate.errors -= before->errors;
    }
    for (size_t i = 0; i < now->n_latency_buckets && i < BUCKETS_MAX; i++) {
        uint64_t earlier = before && i < before->n_latency_buckets ? before->latency_buckets[i] : 0;
        uint64_t count = now->latency_buckets[i];
        rate.latency[i] = count > earlier ? count - earlier : 0;
    }
    return rate;
}

// Returns the upper end, in µs, of the bucket in which this share of the calls ends; 0 if there
// were none.
static int64_t quantile(const MethodRate *rate, double part)
{
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < BUCKETS_MAX; i++)
        all += rate->latency[i];
    for (size_t i = 0; all > 0 && i < BUCKETS_MAX - 1; i++) {
        seen += rate->latency[i];
        if ((double)seen >= part * (double)all) return INT64_C(1) << i;
    }
    return 0;
}

static int by_calls(const void *a, const void *b)
{
    const MethodRate *one = a, *other = b;
    return (one->calls < other->calls) - (one->calls > other->calls);
}

static void draw_methods(TopFrame *frame, const MethodRate *rates, size_t count, double seconds)
{
    line(frame, true, "%-28s %10s %10s %8s %9s %9s", "METHOD", "CALLS", "PER S", "ERRORS", "P50 <",
         "P99 <");
    for (size_t i = 0; i < count && i < METHODS_SHOWN && rates[i].calls > 0; i++) {
        const char *slash = strrchr(rates[i].name, '/');
        line(frame, false, "%-28.60s %10" PRIu64 " %10.1f %8" PRIu64 " %9s %9s",
             slash ? slash + 1 : rates[i].name, rates[i].calls,
             seconds > 0 ? (double)rates[i].calls / seconds : 0, rates[i].errors,
             format_duration(quantile(&rates[i], 0.5)).text,
             format_duration(quantile(&rates[i], 0.99)).text);
    }
}

static void draw_sessions(TopFrame *frame, const ListSessionsResponse *sessions)
{
    static const char *const STATUS[] = {"", "", "busy", "retry"};
    int64_t now_ms = cli_now_ms();
    line(frame, true, "%-26s %5s %-6s %7s %9s  %s", "SESSION", "AGE", "STATE", "MSGS", "COST",
         "NAME");
    for (size_t i = 0; i < sessions->n_sessions; i++) {
        const Session *session = sessions->sessions[i];
        line(frame, false, "%-26s %5s %-6s %7" PRIu64 " %9s  %.200s", session->id,
             format_age(session->last_active_at, now_ms).text,
             (unsigned)session->status < 4 ? STATUS[session->status] : "", session->message_count,
             format_money(session->own_totals->cost_nano_usd).text,
             *session->slug ? session->slug : session->title);
    }
}

static size_t busy_count(const ListSessionsResponse *sessions)
{
    size_t count = 0;
    for (size_t i = 0; i < sessions->n_sessions; i++) {
        count += sessions->sessions[i]->status == SESSION_STATUS_BUSY;
    }
    return count;
}

static void draw_server(TopFrame *frame, const TopSample *before, const TopSample *now,
                        const MethodRate *all, double seconds)
{
    const StatsResponse *stats = now->stats, *earlier = before->stats ? before->stats : NULL;
    const HealthResponse *health = now->health;
    double batches = per_second(stats->batches, earlier ? earlier->batches : 0, seconds);
    double batched =
        per_second(stats->batched_requests, earlier ? earlier->batched_requests : 0, seconds);
    line(frame, false, "sessions  %zu%s active in 5 min, %zu busy", now->sessions->n_sessions,
         *now->sessions->next_cursor ? " or more" : "", busy_count(now->sessions));
    line(frame, false, "requests  %.1f/s, %" PRIu64 " failed   p50 < %s, p99 < %s",
         seconds > 0 ? (double)all->calls / seconds : 0, all->errors,
         format_duration(quantile(all, 0.5)).text, format_duration(quantile(all, 0.99)).text);
    line(frame, false, "writes    %.1f/s in %.1f batches/s   queued %" PRIu64 " (%s)", batched,
         batches, stats->queued_requests, format_bytes(stats->queued_bytes).text);
    line(frame, false, "readers   %u of %u, the oldest %" PRIu64 " transactions back",
         stats->readers, stats->readers_max,
         stats->readers > 0 && stats->last_txn > stats->oldest_reader_txn
             ? stats->last_txn - stats->oldest_reader_txn
             : 0);
    line(frame, false, "store     %s used, %s free in the file   purges pending %" PRIu64,
         format_bytes(stats->used_bytes).text, format_bytes(stats->free_bytes).text,
         stats->purges_pending);
    line(frame, false, "disk      %s free of %s%s", format_bytes(health->disk_free_bytes).text,
         format_bytes(health->disk_total_bytes).text, health->disk_low ? "   LOW" : "");
}

void top_draw(const Cli *cli, TopFrame *frame, const TopSample *before, const TopSample *now)
{
    static MethodRate rates[METHODS_MAX];
    MethodRate all = {0};
    size_t count = 0;
    int64_t up_ms = cli_now_ms() - now->stats->started_at;
    double seconds =
        before->stats ? (double)(now->taken_ns - before->taken_ns) / 1e9 : (double)up_ms / 1e3;
    for (size_t i = 0; i < now->stats->n_methods && count < METHODS_MAX; i++) {
        const MethodStats *method = now->stats->methods[i];
        MethodRate *rate = &rates[count++];
        *rate = rate_of(method, method_of(before->stats, method->name));
        all.calls += rate->calls;
        all.errors += rate->errors;
        if (strstr(method->name, "ListEvents")) continue; // its callers wait on purpose
        for (size_t j = 0; j < BUCKETS_MAX; j++)
            all.latency[j] += rate->latency[j];
    }
    qsort(rates, count, sizeof(MethodRate), by_calls);
    line(frame, true, "tined at %s, up %s", cli->url,
         format_age(now->stats->started_at, cli_now_ms()).text);
    draw_server(frame, before, now, &all, seconds);
    line(frame, false, "%s", "");
    draw_methods(frame, rates, count, seconds);
    line(frame, false, "%s", "");
    draw_sessions(frame, now->sessions);
}

void top_draw_failure(TopFrame *frame, const TineStatus *status)
{
    line(frame, false, "%s", status->message);
}
