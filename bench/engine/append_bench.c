// Appends: durable ones on an aged file, against bare LMDB on a copy of it.

#include <stdio.h>

#include "aged.h"
#include "bare.h"
#include "os/clock.h"
#include "rows.h"
#include "store/tables.h"
#include "writers.h"

static void flat(const Options *options)
{
    size_t sizes[] = {100, 10000, options->is_quick ? 50000 : 1000000};
    const char *names[] = {"append-100", "append-10000", "append-1000000"};
    Bench benches[3];
    Buffer requests[3];
    Samples samples[3] = {{.values = NULL}};
    for (int i = 0; i < 3; i++) {
        char path[512];
        IdText session;
        bench_path(options, names[i], path, sizeof(path));
        aged_make(path, sizes[i], /* has_operation_ids= */ false, &session, 1);
        bench_open(&benches[i], path, /* is_ephemeral= */ false);
        requests[i] = append_request(session.text, APPEND_TEXT_BYTES);
    }
    size_t rounds = options->is_quick ? 200 : 1000;
    for (size_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 3; i++) {
            int64_t t0 = clock_monotonic_ns();
            (void)bench_run(&benches[i], &requests[i]);
            samples_add(&samples[i], clock_monotonic_ns() - t0);
        }
    }
    double us[3];
    for (int i = 0; i < 3; i++)
        us[i] = samples_median_us(&samples[i]);
    report_ratio_at_most("append at 10 000 messages / at 100", us[1] / us[0], 1.3, "%.0f / %.0f us",
                         us[1], us[0]);
    report_ratio_at_most("append at 1 000 000 messages / at 100", us[2] / us[0], 1.3,
                         "%.0f / %.0f us", us[2], us[0]);
    for (int i = 0; i < 3; i++) {
        samples_free(&samples[i]);
        buffer_free(&requests[i]);
        char path[512];
        snprintf(path, sizeof(path), "%s", benches[i].path);
        bench_close(&benches[i]);
        bench_remove(path);
    }
}

static void alone(const Options *options, Bench *bench, Bare *bare, const char *session)
{
    Buffer request = append_request(session, APPEND_TEXT_BYTES);
    Samples ours = {.values = NULL}, theirs = {.values = NULL};
    size_t rounds = options->is_quick ? 300 : 3000;
    (void)bench_run(bench, &request);
    for (size_t i = 0; i < rounds; i++) {
        int64_t t0 = clock_monotonic_ns();
        (void)bench_run(bench, &request);
        int64_t t1 = clock_monotonic_ns();
        bare_append(bare, 1, /* moves_active= */ false);
        int64_t t2 = clock_monotonic_ns();
        samples_add(&ours, t1 - t0);
        samples_add(&theirs, t2 - t1);
    }
    double ours_us = samples_median_us(&ours), theirs_us = samples_median_us(&theirs);
    report_ratio_at_most("durable append / bare commit of its rows", ours_us / theirs_us, 1.15,
                         "%.0f / %.0f us; p99 %.0f / %.0f us", ours_us, theirs_us,
                         samples_quantile_us(&ours, 0.99), samples_quantile_us(&theirs, 0.99));
    samples_free(&ours);
    samples_free(&theirs);
    buffer_free(&request);
}

static void together(const Options *options, Bench *bench, Bare *bare, const IdText *sessions)
{
    enum { ROUNDS = 9 };
    size_t count = options->is_quick ? 20 : 100;
    Writers *writers = writers_open(sessions, /* has_operation_ids= */ false);
    double ours[ROUNDS], theirs[ROUNDS];
    WriterStats before, after;
    engine_writer_stats(bench->engine, &before);
    for (int round = 0; round < ROUNDS; round++) {
        ours[round] = writers_run(writers, bench->engine, count);
        int64_t t0 = clock_monotonic_ns();
        for (size_t i = 0; i < count; i++)
            bare_append(bare, WRITERS, /* moves_active= */ true);
        theirs[round] = (double)(WRITERS * count) * 1e9 / (double)(clock_monotonic_ns() - t0);
    }
    double our_rate = median_of(ours, ROUNDS), their_rate = median_of(theirs, ROUNDS);
    report_ratio_at_least("64 writers / bare batches of 64", our_rate / their_rate, 0.7,
                          "%.0f / %.0f appends a second", our_rate, their_rate);
    engine_writer_stats(bench->engine, &after);
    report_note("%.1f appends a commit", (double)(after.requests - before.requests) /
                                             (double)(after.batches - before.batches));
    writers_close(writers);
}

// Where the writer's time goes: in handlers, in the commit, and waiting for calls.
typedef struct WriterTimes {
    int64_t at_ns, run_ns, commit_ns;
    size_t commits;
} WriterTimes;

static Error note_time(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    WriterTimes *times = context;
    int64_t now_ns = clock_monotonic_ns();
    if (operation == KV_COMMIT) times->run_ns += now_ns - times->at_ns;
    if (operation == KV_COMMITTED) {
        times->commit_ns += now_ns - times->at_ns;
        times->commits++;
    }
    if (operation == KV_BEGIN_WRITE || operation == KV_COMMIT) times->at_ns = now_ns;
    return ERROR_NONE;
}

// Counts the rows that one append writes, by table, at the seam.
typedef struct RowCount {
    size_t rows[TABLE_COUNT];
} RowCount;

static Error count_row(void *context, KvOperation operation, KvTable table)
{
    RowCount *count = context;
    if (operation == KV_PUT || operation == KV_DELETE) count->rows[table]++;
    return ERROR_NONE;
}

static void count_rows(const char *path, const IdText *session)
{
    static const char *const CASES[] = {"rows of an append, another session was last",
                                        "rows of an append, the session was last"};
    RowCount count;
    Bench bench;
    Buffer request = append_request(session->text, APPEND_TEXT_BYTES);
    bench_open_with_seam(&bench, path, (KvSeam){count_row, &count});
    for (int row = 0; row < 2; row++) {
        count = (RowCount){{0}};
        (void)bench_run(&bench, &request);
        char list[256] = "";
        size_t total = 0;
        for (size_t i = 0; i < TABLE_COUNT; i++) {
            total += count.rows[i];
            if (!count.rows[i]) continue;
            size_t size = strlen(list);
            snprintf(list + size, sizeof(list) - size, " %s %zu", store_table_name(i),
                     count.rows[i]);
        }
        report_ratio_at_most(CASES[row], (double)total, 8, "%s", list);
    }
    bench_close(&bench);
    buffer_free(&request);
}

void bench_append(const Options *options)
{
    if (!row_is_wanted(options, "append")) return;
    char path[512], copy[512];
    bench_path(options, "append", path, sizeof(path));
    bench_path(options, "append-copy", copy, sizeof(copy));
    IdText sessions[WRITERS];
    aged_make(path, options->is_quick ? 20000 : 200000, /* has_operation_ids= */ false, sessions,
              WRITERS);
    count_rows(path, &sessions[1]);
    bench_copy(path, copy);
    Bench bench;
    Bare bare = {.env = NULL};
    WriterTimes times = {0, 0, 0, 0};
    bench_open_with_seam(&bench, path, (KvSeam){note_time, &times});
    bare_open(&bare, copy, sessions, WRITERS);
    alone(options, &bench, &bare, sessions[1].text);
    times = (WriterTimes){0, 0, 0, 0};
    together(options, &bench, &bare, sessions);
    double commits = (double)times.commits;
    report_note("each commit: %.0f us in handlers, %.0f us in the commit itself",
                (double)times.run_ns / 1e3 / commits, (double)times.commit_ns / 1e3 / commits);
    bare_close(&bare);
    bench_close(&bench);
    bench_remove(path);
    bench_remove(copy);
    flat(options);
}
