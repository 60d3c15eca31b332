// tine stats: shows the counters of the running server.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "format.h"
#include "json_print.h"
#include "latency.h"
#include "safe_mode.h"

static void print_bytes(const Printer *out, const char *name, uint64_t bytes)
{
    print(out, "%-22s %12.1f MiB\n", name, (double)bytes / (1024 * 1024));
}

static void print_count(const Printer *out, const char *name, uint64_t count)
{
    print(out, "%-22s %12llu\n", name, (unsigned long long)count);
}

static void print_methods(const Printer *out, const StatsResponse *stats)
{
    if (stats->n_methods == 0) return;
    print(out, "\n%-28s %10s %8s %10s %10s\n", "CALL", "CALLS", "ERRORS", "HALF BELOW",
          "99 % BELOW");
    for (size_t i = 0; i < stats->n_methods; i++) {
        const MethodStats *method = stats->methods[i];
        size_t count = method->n_latency_buckets;
        uint64_t half_us = latency_below_us(method->latency_buckets, count, 0.5);
        uint64_t most_us = latency_below_us(method->latency_buckets, count, 0.99);
        print(out, "%-28s %10llu %8llu %10s %10s\n", method->name,
              (unsigned long long)method->calls, (unsigned long long)method->errors,
              format_duration((int64_t)half_us).text, format_duration((int64_t)most_us).text);
    }
}

// A process that is stopped during a read makes the file grow, so its name is shown.
static void print_oldest_reader(const Printer *out, const StatsResponse *stats)
{
    print_count(out, "oldest reader behind", stats->last_txn - stats->oldest_reader_txn);
    if (stats->oldest_reader_pid == 0 || stats->last_txn == stats->oldest_reader_txn) return;
    char path[64], name[64] = "";
    snprintf(path, sizeof(path), "/proc/%u/comm", stats->oldest_reader_pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(name, sizeof(name), file)) name[0] = '\0';
    if (file) fclose(file);
    name[strcspn(name, "\n")] = '\0';
    print(out, "%-22s %12u %s\n", "… process", stats->oldest_reader_pid, name);
}

static void print_stats(const Printer *out, const StatsResponse *stats)
{
    print_bytes(out, "file, in use", stats->used_bytes);
    print_bytes(out, "file, free inside", stats->free_bytes);
    print_count(out, "readers", stats->readers);
    print_count(out, "transactions", stats->last_txn);
    print_oldest_reader(out, stats);
    print_count(out, "batches of writes", stats->batches);
    print_count(out, "writes in them", stats->batched_requests);
    print_count(out, "batches run again", stats->batches_rerun);
    print_count(out, "writes queued", stats->queued_requests);
    print_count(out, "purges pending", stats->purges_pending);
    print_count(out, "oldest event kept", stats->oldest_event_sequence);
    print_count(out, "newest event", stats->newest_event_sequence);
    if (stats->is_relaxed) {
        print_count(out, "commits not flushed", stats->unflushed_commits);
        print_bytes(out, "about so much of it", stats->unflushed_bytes);
        print_count(out, "the oldest, ms ago", (uint64_t)stats->unflushed_ms);
    }
    print(out, "\n%-22s %12s\n", "TABLE", "ROWS");
    for (size_t i = 0; i < stats->n_tables; i++) {
        print_count(out, stats->tables[i]->name, stats->tables[i]->rows);
    }
    print_methods(out, stats);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    StatsRequest request = STATS_REQUEST__INIT;
    CLEANUP(message_freep) StatsResponse *reply = NULL;
    if (tine_stats(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
    if (cli->is_json) return cli_print_json(cli, &reply->base);
    SafeModeState safe = safe_mode_ask(cli);
    cli_page(cli);
    if (safe.is_on) print_count(&cli->out, "safe mode, left out", safe.left_out);
    print_stats(&cli->out, reply);
    return EXIT_OK;
}

const Command command_stats = {
    .name = "stats",
    .arguments = "",
    .summary = "shows the counters of the running tined",
    .details = "Times are counted by powers of two: \"half below 64 us\" means that half of the\n"
               "calls since tined started took less than 64 us.",
    .examples = {"tine stats", "tine stats --json | jq .queued_requests"},
    .run = run,
};
