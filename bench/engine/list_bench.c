// Listings and single reads: 50 of 100 000 sessions against 50 of 100, and GetSession on a long
// one.

#include "rows.h"

#include <stdio.h>

#include "os/clock.h"

typedef struct Listing {
    Bench small, large;
} Listing;

// Sessions whose slug says "even" in every second one.
static void fill(Bench *bench, size_t count)
{
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = "/home/user/project";
    session.model = &model;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    session.slug = "odd-session";
    Buffer odd = request_make(METHOD_CREATE_SESSION, &request.base);
    session.slug = "even-session";
    Buffer even = request_make(METHOD_CREATE_SESSION, &request.base);
    for (size_t i = 0; i < count; i += 2) {
        (void)bench_run(bench, &odd);
        (void)bench_run(bench, &even);
    }
    buffer_free(&odd);
    buffer_free(&even);
}

static Buffer list_request(const char *query)
{
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    request.query = (char *)(uintptr_t)query;
    request.limit = 50;
    return request_make(METHOD_LIST_SESSIONS, &request.base);
}

static void compare(const Options *options, Listing *listing, const char *name, const char *query)
{
    Buffer request = list_request(query);
    Samples small = {.values = NULL}, large = {.values = NULL};
    size_t rounds = options->is_quick ? 300 : 2000;
    for (size_t i = 0; i < rounds; i++) {
        int64_t t0 = clock_monotonic_ns();
        (void)bench_run(&listing->small, &request);
        int64_t t1 = clock_monotonic_ns();
        (void)bench_run(&listing->large, &request);
        int64_t t2 = clock_monotonic_ns();
        samples_add(&small, t1 - t0);
        samples_add(&large, t2 - t1);
    }
    double large_us = samples_median_us(&large), small_us = samples_median_us(&small);
    report_ratio_at_most(name, large_us / small_us, 2.0, "%.1f us / %.1f us", large_us, small_us);
    samples_free(&small);
    samples_free(&large);
    buffer_free(&request);
}

static void without_match(const Options *options, Listing *listing)
{
    Buffer request = list_request("matches nothing");
    Samples samples = {.values = NULL};
    for (size_t i = 0; i < (options->is_quick ? 20u : 100u); i++) {
        int64_t t0 = clock_monotonic_ns();
        (void)bench_run(&listing->large, &request);
        samples_add(&samples, clock_monotonic_ns() - t0);
    }
    report_note("list, a query without a match: %.2f ms per 10 000 scanned sessions",
                samples_median_us(&samples) / 1000.0);
    samples_free(&samples);
    buffer_free(&request);
}

static double get_session_us(Bench *bench, size_t messages, size_t rounds)
{
    IdText id = bench_session(bench, "");
    Buffer append = append_request(id.text, 512);
    bench_run_many(bench, &append, messages);
    buffer_free(&append);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = id.text;
    Buffer bytes = request_make(METHOD_GET_SESSION, &request.base);
    Samples samples = {.values = NULL};
    for (size_t i = 0; i < rounds; i++) {
        int64_t t0 = clock_monotonic_ns();
        (void)bench_run(bench, &bytes);
        samples_add(&samples, clock_monotonic_ns() - t0);
    }
    double us = samples_median_us(&samples);
    samples_free(&samples);
    buffer_free(&bytes);
    return us;
}

void bench_list(const Options *options)
{
    if (!row_is_wanted(options, "list")) return;
    char small[512], large[512];
    bench_path(options, "list-small", small, sizeof(small));
    bench_path(options, "list-large", large, sizeof(large));
    Listing listing;
    bench_open(&listing.small, small, /* is_ephemeral= */ true);
    bench_open(&listing.large, large, /* is_ephemeral= */ true);
    fill(&listing.small, 100);
    fill(&listing.large, options->is_quick ? 20000 : 100000);
    compare(options, &listing, "list 50 of 100 000 / 50 of 100", "");
    compare(options, &listing, "list with a query that half match, the same", "even");
    without_match(options, &listing);

    size_t rounds = options->is_quick ? 2000 : 20000;
    double long_us = get_session_us(&listing.large, options->is_quick ? 10000 : 100000, rounds);
    double short_us = get_session_us(&listing.large, 10, rounds);
    report_ratio_at_most("GetSession, 100 000 messages / 10 messages", long_us / short_us, 1.3,
                         "%.2f us / %.2f us", long_us, short_us);
    bench_close(&listing.small);
    bench_close(&listing.large);
    bench_remove(small);
    bench_remove(large);
}
