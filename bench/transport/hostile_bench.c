// A good client, connected before, while other peers do harm: one kind after the other, then all.

#include "calls.h"
#include "os/clock.h"
#include "rows.h"

enum { TEXT_BYTES = 1024, MESSAGES = 290, KINDS = 4, TARGET_MS = 50 };

static const char *const HARM[KINDS] = {"storm", "dying-pipelines", "non-readers", "bad-hellos"};

static const char *const NAMES[KINDS] = {
    "p99 in ms, others connect and hang up",
    "p99 in ms, others pipeline 64 requests and die",
    "p99 in ms, 50 others never read their replies",
    "p99 in ms, others say no hello",
};

// A session with a history of 300 KiB.
static IdText make_store(const Options *options, char *path, size_t path_bytes_max)
{
    Bench bench;
    bench_path(options, "hostile", path, path_bytes_max);
    bench_open(&bench, path, /* is_ephemeral= */ true);
    IdText session = bench_session(&bench, "");
    Buffer append = append_request(session.text, TEXT_BYTES);
    bench_run_many(&bench, &append, MESSAGES);
    buffer_free(&append);
    bench_close(&bench);
    return session;
}

// GetSession and, every tenth time, an append.
static void serve_for(const Options *options, GetCall *get, const AppendMessageRequest *append,
                      const char *name, double target_ms)
{
    Samples reads = {.values = NULL}, writes = {.values = NULL};
    int64_t until_ns = clock_monotonic_ns() + (options->is_quick ? 1 : 6) * INT64_C(1000000000);
    for (size_t i = 0; clock_monotonic_ns() < until_ns; i++) {
        int64_t t0 = clock_monotonic_ns();
        if (i % 10 == 9) {
            append_by_libtine(get->tine, append, NULL);
        } else {
            get_call(get);
        }
        samples_add(i % 10 == 9 ? &writes : &reads, clock_monotonic_ns() - t0);
    }
    report_ratio_at_most(name, samples_quantile_us(&reads, 0.99) / 1000, target_ms,
                         "GetSession %.2f ms in the median, %.1f at most; append %.1f, p99 %.1f",
                         samples_median_us(&reads) / 1000, samples_quantile_us(&reads, 1) / 1000,
                         samples_median_us(&writes) / 1000,
                         samples_quantile_us(&writes, 0.99) / 1000);
    samples_free(&reads);
    samples_free(&writes);
}

void bench_hostile(const Options *options)
{
    if (!row_is_wanted(options, "hostile")) return;
    char path[512];
    IdText session = make_store(options, path, sizeof(path));
    Peer tined, peers[KINDS];
    tined_start(&tined, NULL, path);
    GetCall get = {tine_of(&tined, "ipc"), session.text};
    Buffer request = append_request(session.text, TEXT_BYTES);
    AppendMessageRequest *append = append_message_of(&request);
    get_call(&get);
    serve_for(options, &get, append, "p99 in ms, no others", TARGET_MS);
    for (size_t i = 0; i < KINDS; i++) {
        peer_start_on(&peers[i], HARM[i], tined.socket, session.text);
        serve_for(options, &get, append, NAMES[i], TARGET_MS);
        peer_stop(&peers[i]);
    }
    for (size_t i = 0; i < KINDS; i++)
        peer_start_on(&peers[i], HARM[i], tined.socket, session.text);
    serve_for(options, &get, append, "p99 in ms, all of these at once", TARGET_MS);
    for (size_t i = 0; i < KINDS; i++)
        peer_stop(&peers[i]);
    protobuf_c_message_free_unpacked(&append->base, NULL);
    buffer_free(&request);
    tine_close(get.tine);
    peer_stop(&tined);
}
