// Large values: how long a 1 MiB message holds the writer, in a fragmented store and in a fresh
// one.

#include "rows.h"

#include "os/clock.h"
#include "store/tables.h"

typedef struct WriterTime {
    int64_t begun_ns, spent_ns;
} WriterTime;

// The writer's time without the disk's: from the transaction's beginning to its commit.
static Error time_writer(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    WriterTime *time = context;
    if (operation == KV_BEGIN_WRITE) time->begun_ns = clock_monotonic_ns();
    if (operation == KV_COMMIT) time->spent_ns = clock_monotonic_ns() - time->begun_ns;
    return ERROR_NONE;
}

static double writer_ms(const char *path, const IdText *session, size_t rounds)
{
    WriterTime time = {0, 0};
    Samples samples = {.values = NULL};
    Buffer request = append_request(session->text, 1024 * 1024);
    Bench bench;
    bench_open_with_seam(&bench, path, (KvSeam){time_writer, &time});
    bench_wait_for_purges(&bench);
    for (size_t i = 0; i < rounds; i++) {
        (void)bench_run(&bench, &request);
        samples_add(&samples, time.spent_ns);
    }
    bench_close(&bench);
    double ms = samples_median_us(&samples) / 1000.0;
    samples_free(&samples);
    buffer_free(&request);
    return ms;
}

// Many small messages of many sessions side by side, every second session purged: free pages
// scattered all over the file.
static void fragment(Bench *bench, size_t rounds)
{
    enum { SESSIONS = 20 };
    IdText ids[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++)
        ids[i] = bench_session(bench, "");
    for (size_t round = 0; round < rounds; round++) {
        Buffer request = append_request(ids[round % SESSIONS].text, 2000);
        bench_run_many(bench, &request, 64);
        buffer_free(&request);
    }
    for (size_t i = 0; i < SESSIONS; i += 2)
        bench_purge(bench, ids[i].text);
    bench_wait_for_purges(bench);
}

void bench_value(const Options *options)
{
    if (!row_is_wanted(options, "value")) return;
    char path[512];
    bench_path(options, "value", path, sizeof(path));
    size_t rounds = options->is_quick ? 20 : 100;
    Bench bench;
    bench_open(&bench, path, /* is_ephemeral= */ true);
    IdText session = bench_session(&bench, "");
    bench_close(&bench);
    double fresh_ms = writer_ms(path, &session, rounds);
    bench_open(&bench, path, /* is_ephemeral= */ true);
    fragment(&bench, options->is_quick ? 200 : 2000);
    bench_close(&bench);
    double aged_ms = writer_ms(path, &session, rounds);
    report_ratio_at_most("value of 1 MiB, writer time in ms, fragmented", aged_ms, 5.0,
                         "fresh store %.2f ms", fresh_ms);
    bench_remove(path);
}
