// Fork-chain reads: history by dispatch against a bare cursor walk that copies the same bytes, at
// depth 8, 64 and 1000; and the cost of one ancestor, which must not grow with the depth.

#include "rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "kv/checksum.h"
#include "os/clock.h"

enum { MESSAGES_PER_SESSION = 25, TEXT_BYTES = 1024 };

// A chain of `depth` forks, each with messages of its own. Returns the leaf, and all ids.
static IdText make_chain(Bench *bench, size_t depth, size_t messages, IdText *out_ids)
{
    IdText id = bench_session(bench, "");
    for (size_t i = 0;; i++) {
        out_ids[i] = id;
        Buffer append = append_request(id.text, TEXT_BYTES);
        bench_run_many(bench, &append, messages);
        buffer_free(&append);
        if (i == depth) return id;
        id = bench_fork(bench, id.text);
    }
}

static Buffer history_request(const char *session)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.page_bytes = PAGE_BYTES_MAX;
    return request_make(METHOD_MESSAGES_FOR_SESSION, &request.base);
}

typedef struct Walk {
    MDB_env *env;
    MDB_dbi tree;
    const IdText *ids;
    size_t count;
    uint8_t *out;
} Walk;

static void walk_open(Walk *walk, const char *path)
{
    MDB_txn *txn;
    require(mdb_env_create(&walk->env) == 0, "mdb_env_create");
    mdb_env_set_mapsize(walk->env, (size_t)1 << 36);
    require(mdb_env_open(walk->env, path, MDB_NOTLS, 0600) == 0, "mdb_env_open %s", path);
    require(mdb_txn_begin(walk->env, NULL, MDB_RDONLY, &txn) == 0, "mdb_txn_begin");
    require(mdb_dbi_open(txn, NULL, 0, &walk->tree) == 0, "mdb_dbi_open");
    mdb_txn_commit(txn);
}

// Copies every value of the sessions, one cursor walk each.
static size_t walk_run(const Walk *walk)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    size_t size = 0;
    require(mdb_txn_begin(walk->env, NULL, MDB_RDONLY, &txn) == 0, "mdb_txn_begin");
    require(mdb_cursor_open(txn, walk->tree, &cursor) == 0, "mdb_cursor_open");
    for (size_t i = 0; i < walk->count; i++) {
        Ulid id;
        require(ulid_parse(slice_of(walk->ids[i].text), &id), "an id");
        uint8_t prefix[1 + ULID_BYTES];
        prefix[0] = (uint8_t)(KV_TABLE_BYTE + STORE_TABLE_OPTIONS[TABLE_MESSAGES].number);
        memcpy(prefix + 1, id.bytes, ULID_BYTES);
        MDB_val key = {sizeof(prefix), prefix}, value;
        int failed = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        while (!failed && memcmp(key.mv_data, prefix, sizeof(prefix)) == 0) {
            memcpy(walk->out + size, value.mv_data, value.mv_size - CHECKSUM_BYTES);
            size += value.mv_size - CHECKSUM_BYTES;
            failed = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return size;
}

typedef struct Chain {
    const char *name;
    size_t depth, messages;
    IdText *ids;      // the leaf's is the last
    double us, ratio; // of one read; to its bare walk
} Chain;

static void against_walk(Bench *bench, Walk *walk, Chain *chain, size_t rounds)
{
    Buffer request = history_request(chain->ids[chain->depth].text);
    Samples ours = {.values = NULL}, bare = {.values = NULL};
    size_t reply_bytes = 0, walk_bytes = 0;
    walk->ids = chain->ids;
    walk->count = chain->depth + 1;
    for (size_t i = 0; i < rounds + 50; i++) {
        int64_t t0 = clock_monotonic_ns();
        reply_bytes = bench_run(bench, &request).size;
        int64_t t1 = clock_monotonic_ns();
        walk_bytes = walk_run(walk);
        int64_t t2 = clock_monotonic_ns();
        if (i < 50) continue; // warm-up
        samples_add(&ours, t1 - t0);
        samples_add(&bare, t2 - t1);
    }
    double ours_us = samples_median_us(&ours), bare_us = samples_median_us(&bare);
    chain->us = ours_us;
    chain->ratio = ours_us / bare_us;
    report_note("%s: %.2f x a bare walk; %.1f us / %.1f us, %zu / %zu bytes", chain->name,
                chain->ratio, ours_us, bare_us, reply_bytes, walk_bytes);
    samples_free(&ours);
    samples_free(&bare);
    buffer_free(&request);
}

void bench_history(const Options *options)
{
    if (!row_is_wanted(options, "history")) return;
    Chain chains[] = {
        {.name = "9 sessions x 25 x 1 KiB", .depth = 8, .messages = 25},
        {.name = "65 x 4 x 1 KiB", .depth = 64, .messages = 4},
        {.name = "1001 x 4 x 1 KiB", .depth = 1000, .messages = 4},
        {.name = "9 x 4 x 1 KiB", .depth = 8, .messages = 4},
    };
    char path[512], copy[512];
    bench_path(options, "history", path, sizeof(path));
    bench_path(options, "history-copy", copy, sizeof(copy));
    Bench bench;
    bench_open(&bench, path, /* is_ephemeral= */ true);
    for (size_t i = 0; i < 4; i++) {
        chains[i].ids = calloc(chains[i].depth + 1, sizeof(IdText));
        require(chains[i].ids != NULL, "out of memory");
        make_chain(&bench, chains[i].depth, chains[i].messages, chains[i].ids);
    }
    bench_close(&bench);
    bench_copy(path, copy);
    bench_open(&bench, path, /* is_ephemeral= */ true);

    Walk walk = {.out = malloc((size_t)16 << 20)};
    require(walk.out != NULL, "out of memory");
    walk_open(&walk, copy);
    size_t rounds = options->is_quick ? 300 : 3000;
    for (size_t i = 0; i < 4; i++)
        against_walk(&bench, &walk, &chains[i], rounds);
    report_ratio_at_most("history 9 x 25 x 1 KiB / bare walk", chains[0].ratio, 2.0, "%.1f us",
                         chains[0].us);
    // A larger reply leaves the caches, the bare walk's too: what may not grow is the share.
    report_ratio_at_most("history at depth 64 / at 8, over bare walks",
                         chains[1].ratio / chains[3].ratio, 1.3, "%.2f / %.2f us per ancestor",
                         chains[1].us / 65, chains[3].us / 9);
    report_ratio_at_most("history at depth 1000 / at 8, over bare walks",
                         chains[2].ratio / chains[3].ratio, 1.3, "%.2f / %.2f us per ancestor",
                         chains[2].us / 1001, chains[3].us / 9);
    mdb_env_close(walk.env);
    free(walk.out);
    for (size_t i = 0; i < 4; i++)
        free(chains[i].ids);
    bench_close(&bench);
    bench_remove(path);
    bench_remove(copy);
}
