// tine metrics: prints the counters in the format of Prometheus (text format 0.0.4), for collectors
// that run programs or read files.

#include <inttypes.h>

#include "cli.h"
#include "connect.h"

typedef struct Metric {
    const char *name, *type, *help;
    uint64_t value;
} Metric;

static void print_heading(const Printer *out, const char *name, const char *type, const char *help)
{
    print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_store(const Printer *out, const StatsResponse *stats,
                        const HealthResponse *health)
{
    const Metric metrics[] = {
        {"tine_ready", "gauge", "Whether the store is ready.", health->ready ? 1 : 0},
        {"tine_disk_free_bytes", "gauge", "Free bytes of the store's disk.",
         health->disk_free_bytes},
        {"tine_disk_total_bytes", "gauge", "Bytes of the store's disk.", health->disk_total_bytes},
        {"tine_store_used_bytes", "gauge", "Bytes of the store's file in use.", stats->used_bytes},
        {"tine_store_free_bytes", "gauge", "Reusable bytes inside the store's file.",
         stats->free_bytes},
        {"tine_store_map_bytes", "gauge", "Bytes that the store's file may grow to.",
         stats->map_bytes},
        {"tine_store_readers", "gauge", "Read transactions that are open.", stats->readers},
        {"tine_store_readers_max", "gauge", "Read transactions that may be open.",
         stats->readers_max},
        {"tine_store_transactions_total", "counter", "Write transactions committed.",
         stats->last_txn},
        {"tine_store_oldest_reader_lag", "gauge",
         "Transactions committed since the oldest reader began.",
         stats->last_txn - stats->oldest_reader_txn},
        {"tine_writer_batches_total", "counter", "Batches of writes.", stats->batches},
        {"tine_writer_requests_total", "counter", "Writes in those batches.",
         stats->batched_requests},
        {"tine_writer_batches_rerun_total", "counter", "Batches run again, write by write.",
         stats->batches_rerun},
        {"tine_writer_queued_requests", "gauge", "Writes that wait.", stats->queued_requests},
        {"tine_writer_queued_bytes", "gauge", "Bytes of the writes that wait.",
         stats->queued_bytes},
        {"tine_unflushed_commits", "gauge", "Commits that are not on the disk yet.",
         stats->unflushed_commits},
        {"tine_unflushed_bytes", "gauge", "About so many bytes of pages of these commits.",
         stats->unflushed_bytes},
        {"tine_purges_pending", "gauge", "Purged sessions whose rows are not all gone.",
         stats->purges_pending},
        {"tine_events_oldest_sequence", "gauge", "Sequence of the oldest event kept.",
         stats->oldest_event_sequence},
        {"tine_events_total", "counter", "Events kept since the store was made.",
         stats->newest_event_sequence},
    };
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        print_heading(out, metrics[i].name, metrics[i].type, metrics[i].help);
        print(out, "%s %" PRIu64 "\n", metrics[i].name, metrics[i].value);
    }
    print_heading(out, "tine_start_time_seconds", "gauge", "When tined started, since the epoch.");
    print(out, "tine_start_time_seconds %.3f\n", (double)stats->started_at / 1e3);
}

static void print_tables(const Printer *out, const StatsResponse *stats)
{
    print_heading(out, "tine_table_rows", "gauge", "Rows of each table of the store.");
    for (size_t i = 0; i < stats->n_tables; i++) {
        print(out, "tine_table_rows{table=\"%s\"} %" PRIu64 "\n", stats->tables[i]->name,
              stats->tables[i]->rows);
    }
}

// The last bucket has no upper limit, so it is +Inf. There is no _sum, because tined counts calls
// by bucket and does not add up their times.
static void print_durations(const Printer *out, const MethodStats *method)
{
    static const char NAME[] = "tine_rpc_duration_seconds";
    uint64_t count = 0;
    for (size_t i = 0; i < method->n_latency_buckets; i++) {
        count += method->latency_buckets[i];
        if (i + 1 == method->n_latency_buckets) break;
        print(out, "%s_bucket{method=\"%s\",le=\"%.6f\"} %" PRIu64 "\n", NAME, method->name,
              (double)(UINT64_C(1) << i) / 1e6, count);
    }
    print(out, "%s_bucket{method=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", NAME, method->name, count);
    print(out, "%s_count{method=\"%s\"} %" PRIu64 "\n", NAME, method->name, count);
}

static void print_methods(const Printer *out, const StatsResponse *stats)
{
    print_heading(out, "tine_rpc_requests_total", "counter", "Calls answered.");
    for (size_t i = 0; i < stats->n_methods; i++) {
        print(out, "tine_rpc_requests_total{method=\"%s\"} %" PRIu64 "\n", stats->methods[i]->name,
              stats->methods[i]->calls);
    }
    print_heading(out, "tine_rpc_errors_total", "counter", "Calls answered with an error.");
    for (size_t i = 0; i < stats->n_methods; i++) {
        print(out, "tine_rpc_errors_total{method=\"%s\"} %" PRIu64 "\n", stats->methods[i]->name,
              stats->methods[i]->errors);
    }
    print_heading(out, "tine_rpc_duration_seconds", "histogram", "How long calls took.");
    for (size_t i = 0; i < stats->n_methods; i++)
        print_durations(out, stats->methods[i]);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    StatsRequest stats_request = STATS_REQUEST__INIT;
    HealthRequest health_request = HEALTH_REQUEST__INIT;
    DescribeRequest describe_request = DESCRIBE_REQUEST__INIT;
    CLEANUP(message_freep) StatsResponse *stats = NULL;
    CLEANUP(message_freep) HealthResponse *health = NULL;
    CLEANUP(message_freep) DescribeResponse *server = NULL;
    if (tine_stats(tine, &cli->call, &stats_request, &stats) ||
        tine_health(tine, &cli->call, &health_request, &health) ||
        tine_describe(tine, &cli->call, &describe_request, &server)) {
        return cli_fail(cli, &cli->status);
    }
    const Printer *out = &cli->out;
    print_heading(out, "tine_info", "gauge",
                  "The server's version, its store's format and identity.");
    print(out, "tine_info{version=\"%s\",format=\"%u\",instance=\"%s\"} 1\n",
          server->server_version, server->format_version, server->instance_id);
    print_store(out, stats, health);
    print_tables(out, stats);
    print_methods(out, stats);
    return EXIT_OK;
}

const Command command_metrics = {
    .name = "metrics",
    .arguments = "",
    .summary = "prints the counters of the running tined for Prometheus",
    .details = "The text format is 0.0.4, for example for the textfile collector of\n"
               "node_exporter. The metrics contain no names or IDs of sessions.",
    .examples = {"tine metrics --no-start", "tine metrics | grep tine_rpc_requests_total"},
    .run = run,
};
