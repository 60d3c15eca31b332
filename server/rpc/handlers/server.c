// Handlers that report on the server.

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "descriptor_set.h"
#include "rpc/engine.h"
#include "rpc/field_rules.h"
#include "rpc/handlers/handler.h"
#include "store/files.h"
#include "store/purge.h"

static const char API_VERSION[] = "v1";
static const uint64_t DISK_LOW_BYTES = UINT64_C(1) << 30;

// Health: reports that the server is ready, and how full the disk is.
Error handle_health(Rpc *rpc, const HealthRequest *request, HealthResponse *response)
{
    (void)request;
    KvStats stats;
    Error error = store_stats(rpc->txn->store, &rpc->detail, &stats);
    if (error) return error;
    struct statvfs disk;
    if (statvfs(store_options(rpc->txn->store)->directory, &disk) == 0) {
        response->disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
        response->disk_total_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    }
    uint64_t low_bytes = response->disk_total_bytes / 20;
    if (low_bytes > DISK_LOW_BYTES) low_bytes = DISK_LOW_BYTES;
    response->store_bytes = stats.used_bytes;
    response->disk_low = response->disk_free_bytes < low_bytes;
    response->ready = true;
    return ERROR_NONE;
}

static const struct {
    const char *name;
    uint64_t value;
} GENERAL_LIMITS[] = {
    {"request_bytes", REQUEST_BYTES_MAX},
    {"page_bytes", PAGE_BYTES_MAX},
    {"page_bytes_default", PAGE_BYTES_DEFAULT},
    {"operation_id_bytes", OPERATION_ID_BYTES_MAX},
    {"string_bytes", STRING_BYTES_MAX},
    {"session_list_limit", SESSION_LIST_LIMIT_MAX},
    {"list_limit", LIST_LIMIT_MAX},
    {"scanned_records", SCANNED_RECORDS_MAX},
    {"json_depth", JSON_DEPTH_MAX},
    {"wait_ms", WAIT_MS_MAX},
    {"queue_requests", QUEUE_REQUESTS_MAX},
    {"queue_bytes", QUEUE_BYTES_MAX},
};

static Error append_limit(Rpc *rpc, DescribeResponse *response, const char *name, uint64_t value)
{
    Limit *limit = arena_new(&rpc->arena, Limit);
    if (!limit) return arena_error(&rpc->arena);
    tine__v1__limit__init(limit);
    limit->name = (char *)(uintptr_t)name;
    limit->value = value;
    response->limits[response->n_limits++] = limit;
    return ERROR_NONE;
}

static Error append_limits(Rpc *rpc, DescribeResponse *response)
{
    size_t general_count = sizeof(GENERAL_LIMITS) / sizeof(*GENERAL_LIMITS), rule_count = 0;
    uint64_t max;
    while (field_rules_limit(rule_count, &max))
        rule_count++;
    response->limits = arena_array(&rpc->arena, Limit *, general_count + rule_count + 2);
    if (!response->limits) return arena_error(&rpc->arena);
    Error error = ERROR_NONE;
    if (engine_safe_mode(rpc->engine)) {
        uint64_t left_out_count = store_options(rpc->txn->store)->left_out_count;
        error = append_limit(rpc, response, "safe_mode", 1);
        if (!error) error = append_limit(rpc, response, "sessions_left_out", left_out_count);
    }
    for (size_t i = 0; !error && i < general_count; i++) {
        error = append_limit(rpc, response, GENERAL_LIMITS[i].name, GENERAL_LIMITS[i].value);
    }
    for (size_t i = 0; !error && i < rule_count; i++) {
        const char *name = field_rules_limit(i, &max);
        error = append_limit(rpc, response, name, max);
    }
    return error;
}

// Returns the absolute path of the directory, in the arena, for processes with another working
// directory.
static char *realpath_in(Arena *arena, const char *directory)
{
    char *path = realpath(directory, NULL);
    char *copy = arena_string(arena, slice_of(path ? path : directory));
    free(path);
    return copy;
}

// Sets nothing if the files of the store have no names any more (--ephemeral), or if their pages
// must be walked first: a damaged page could end a direct reader by a signal.
static Error describe_direct_reads(Rpc *rpc, DescribeResponse *response)
{
    if (store_is_walk_due(rpc->txn->store)) return ERROR_NONE;
    const char *directory = store_options(rpc->txn->store)->directory;
    if (engine_safe_mode(rpc->engine)) return ERROR_NONE; // others would meet what is left out
    struct stat data, namespace;
    DataFileIds files;
    store_file_ids(rpc->txn->store, &files);
    if (stat(store_path(directory, KV_FILE_DATA).text, &data) != 0 ||
        data.st_ino != files.data_inode || data.st_dev != files.device ||
        stat("/proc/self/ns/pid", &namespace) != 0) {
        return ERROR_NONE;
    }
    DirectReads *reads = arena_new(&rpc->arena, DirectReads);
    if (!reads) return arena_error(&rpc->arena);
    tine__v1__direct_reads__init(reads);
    reads->directory = realpath_in(&rpc->arena, directory);
    if (!reads->directory) return arena_error(&rpc->arena);
    reads->device = files.device;
    reads->data_inode = files.data_inode;
    reads->lock_inode = files.lock_inode;
    reads->map_bytes = files.map_bytes;
    reads->pid_namespace = namespace.st_ino;
    reads->user_id = geteuid();
    response->direct_reads = reads;
    return ERROR_NONE;
}

// Describe: returns the descriptor set, limits and versions.
Error handle_describe(Rpc *rpc, const DescribeRequest *request, DescribeResponse *response)
{
    (void)request;
    response->descriptor_set.data = (uint8_t *)(uintptr_t)DESCRIPTOR_SET;
    response->descriptor_set.len = DESCRIPTOR_SET_BYTES;
    response->server_version = TINE_VERSION;
    response->api_version = (char *)(uintptr_t)API_VERSION;
    response->format_version = STORE_FORMAT_VERSION;
    response->instance_id = (char *)(uintptr_t)store_instance_id(rpc->txn->store);
    Error error = describe_direct_reads(rpc, response);
    return error ? error : append_limits(rpc, response);
}

static Error append_tables(Rpc *rpc, const KvStats *stats, StatsResponse *response)
{
    response->tables = arena_array(&rpc->arena, TableStats *, TABLE_COUNT);
    if (!response->tables) return arena_error(&rpc->arena);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        TableStats *table = arena_new(&rpc->arena, TableStats);
        if (!table) return arena_error(&rpc->arena);
        tine__v1__table_stats__init(table);
        table->name = (char *)(uintptr_t)store_table_name((StoreTable)i);
        table->rows = stats->rows[i];
        response->tables[response->n_tables++] = table;
    }
    return ERROR_NONE;
}

static Error append_methods(Rpc *rpc, StatsResponse *response)
{
    response->methods = arena_array(&rpc->arena, MethodStats *, METHOD_COUNT);
    if (!response->methods) return arena_error(&rpc->arena);
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        MethodCounts counts;
        engine_method_counts(rpc->engine, i, &counts);
        if (counts.calls == 0) continue;
        MethodStats *method = arena_new(&rpc->arena, MethodStats);
        uint64_t *buckets = arena_array(&rpc->arena, uint64_t, LATENCY_BUCKETS);
        if (!method || !buckets) return arena_error(&rpc->arena);
        tine__v1__method_stats__init(method);
        method->name = (char *)(uintptr_t)METHODS[i].name;
        method->calls = counts.calls;
        method->errors = counts.errors;
        memcpy(buckets, counts.latency_buckets, sizeof(counts.latency_buckets));
        method->latency_buckets = buckets;
        method->n_latency_buckets = LATENCY_BUCKETS;
        response->methods[response->n_methods++] = method;
    }
    return ERROR_NONE;
}

// Stats: returns counters of the running server.
Error handle_stats(Rpc *rpc, const StatsRequest *request, StatsResponse *response)
{
    (void)request;
    KvStats stats;
    WriterStats writer;
    StoreState state;
    Error error = store_stats(rpc->txn->store, &rpc->detail, &stats);
    if (!error) error = txn_state(rpc->txn, &state);
    if (!error) error = purge_pending_count(rpc->txn, &response->purges_pending);
    if (error) return error;
    engine_writer_stats(rpc->engine, &writer);
    response->map_bytes = stats.map_bytes;
    response->used_bytes = stats.used_bytes;
    response->free_bytes = stats.free_bytes;
    response->readers = stats.readers;
    response->readers_max = stats.readers_max;
    response->last_txn = stats.last_txn;
    response->oldest_reader_txn = stats.oldest_reader_txn;
    response->oldest_reader_pid = (uint32_t)stats.oldest_reader_pid;
    response->batches = writer.batches;
    response->batched_requests = writer.requests;
    response->batches_rerun = writer.batches_rerun;
    response->queued_requests = writer.queued_requests;
    response->queued_bytes = writer.queued_bytes;
    response->oldest_event_sequence = state.first_event_sequence;
    response->newest_event_sequence = state.last_event_sequence;
    KvFlushStats flush;
    store_flush_stats(rpc->txn->store, &flush);
    response->is_relaxed = flush.is_relaxed;
    response->unflushed_commits = flush.commits;
    response->unflushed_bytes = flush.bytes;
    response->unflushed_ms = flush.oldest_ms;
    response->started_at = engine_started_at(rpc->engine);
    error = append_tables(rpc, &stats, response);
    return error ? error : append_methods(rpc, response);
}
