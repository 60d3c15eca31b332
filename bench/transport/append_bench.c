// Appends over sockets: durable ones on an aged file. libtine's carry an operation_id each, which
// costs two rows; the peers write them too.

#include <stdio.h>

#include "aged.h"
#include "bare.h"
#include "calls.h"
#include "fleet.h"
#include "os/clock.h"
#include "rows.h"

typedef struct Scene {
    Peer tined, nng_server;
    Bench engine; // on a copy of tined's file
    Bare bare;    // on another one
    IdText sessions[WRITERS];
    Buffer request; // with an operation_id
} Scene;

static void scene_open(const Options *options, Scene *scene)
{
    char path[512], copy[512];
    bench_path(options, "append", path, sizeof(path));
    aged_make(path, options->is_quick ? 20000 : 200000, /* has_operation_ids= */ true,
              scene->sessions, WRITERS);
    bench_path(options, "append-bare", copy, sizeof(copy));
    bench_copy(path, copy);
    bare_open(&scene->bare, copy, scene->sessions, WRITERS);
    bench_path(options, "append-engine", copy, sizeof(copy));
    bench_copy(path, copy);
    bench_open(&scene->engine, copy, /* is_ephemeral= */ false);
    tined_start(&scene->tined, NULL, path);
    peer_start(&scene->nng_server, "nng", "");
    Buffer request = append_request(scene->sessions[1].text, APPEND_TEXT_BYTES);
    scene->request = request_with_operation_id(&request);
    buffer_free(&request);
}

static void scene_close(const Options *options, Scene *scene)
{
    char path[512];
    buffer_free(&scene->request);
    peer_stop(&scene->nng_server);
    peer_stop(&scene->tined);
    bench_close(&scene->engine);
    bench_path(options, "append-engine", path, sizeof(path));
    bench_remove(path);
    bare_close(&scene->bare);
    bench_path(options, "append-bare", path, sizeof(path));
    bench_remove(path);
}

// One client. In each round: by libtine, in the engine, and the bare commit with an echo.
static void alone(const Options *options, Scene *scene, bool has_operation_ids)
{
    Buffer plain = append_request(scene->sessions[1].text, APPEND_TEXT_BYTES);
    Buffer *request = has_operation_ids ? &scene->request : &plain;
    AppendMessageRequest *append = append_message_of(&plain);
    Tine *tine = tine_of(&scene->tined, "ipc");
    Channel *channel = sp_channel_of(&scene->tined);
    ChannelWay once = {channel, buffer_slice(request), 0};
    channel_way_call(&once);
    EchoWay echo = {NULL, nng_echo_open(scene->nng_server.socket), buffer_size(request),
                    once.reply_bytes};
    size_t operation_bytes = scene->bare.operation_bytes;
    if (!has_operation_ids) scene->bare.operation_bytes = 0;
    Samples ours = {.values = NULL}, engine = {.values = NULL}, theirs = {.values = NULL},
            commit = {.values = NULL};
    size_t rounds = options->is_quick ? 200 : 2000;
    for (size_t i = 0; i < rounds; i++) {
        int64_t t0 = clock_monotonic_ns();
        append_by_libtine(tine, append, has_operation_ids ? NULL : "");
        int64_t t1 = clock_monotonic_ns();
        bare_append(&scene->bare, 1, /* moves_active= */ false);
        int64_t t2 = clock_monotonic_ns();
        echo_way_call(&echo);
        int64_t t3 = clock_monotonic_ns();
        if (has_operation_ids) request_renew_operation_id(request);
        (void)bench_run(&scene->engine, request);
        int64_t t4 = clock_monotonic_ns();
        if (i == 0) continue; // connecting
        samples_add(&ours, t1 - t0);
        samples_add(&commit, t2 - t1);
        samples_add(&theirs, t3 - t1);
        samples_add(&engine, t4 - t3);
    }
    double ours_us = samples_median_us(&ours), theirs_us = samples_median_us(&theirs);
    report_ratio_at_most(has_operation_ids ? "durable append by libtine / bare commit + libnng echo"
                                           : "the same without an operation_id",
                         ours_us / theirs_us, 1.3, "%.0f / %.0f us; p99 %.0f / %.0f us", ours_us,
                         theirs_us, samples_quantile_us(&ours, 0.99),
                         samples_quantile_us(&theirs, 0.99));
    report_note("the bare commit alone %.0f us; in the engine, without sockets, %.0f us",
                samples_median_us(&commit), samples_median_us(&engine));
    samples_free(&ours);
    samples_free(&engine);
    samples_free(&theirs);
    samples_free(&commit);
    scene->bare.operation_bytes = operation_bytes;
    channel->close(channel);
    nng_echo_close(echo.nng);
    tine_close(tine);
    protobuf_c_message_free_unpacked(&append->base, NULL);
    buffer_free(&plain);
}

// Requests and batches of the writer of tined since its start.
static StatsResponse *stats_of(Tine *tine)
{
    StatsRequest request = STATS_REQUEST__INIT;
    StatsResponse *stats;
    require(tine_stats(tine, NULL, &request, &stats) == 0, "Stats failed");
    return stats;
}

static double appends_a_commit(const StatsResponse *before, const StatsResponse *after)
{
    return (double)(after->batched_requests - before->batched_requests) /
           (double)(after->batches - before->batches);
}

static void together(const Options *options, Scene *scene)
{
    enum { ROUNDS = 9 };
    size_t count = options->is_quick ? 20 : 100;
    Writers *writers = writers_open(scene->sessions, /* has_operation_ids= */ true);
    Fleet *fleet = fleet_open(&scene->tined, scene->sessions);
    double engine[ROUNDS], light[ROUNDS], libtine[ROUNDS];
    ProcessUsage before, after;
    (void)fleet_run_libtine(fleet, 1); // connects
    double cpu_ms = 0, switches = 0;
    Tine *tine = tine_of(&scene->tined, "ipc");
    StatsResponse *stats_before = stats_of(tine);
    for (int round = 0; round < ROUNDS; round++) {
        engine[round] = writers_run(writers, scene->engine.engine, count);
        process_usage(scene->tined.pid, &before);
        light[round] = fleet_run_light(fleet, count);
        process_usage(scene->tined.pid, &after);
        cpu_ms += after.cpu_ms - before.cpu_ms;
        switches += (double)(after.switches - before.switches);
        libtine[round] = fleet_run_libtine(fleet, count);
    }
    double engine_rate = median_of(engine, ROUNDS), light_rate = median_of(light, ROUNDS),
           libtine_rate = median_of(libtine, ROUNDS), calls = (double)(ROUNDS * WRITERS * count);
    report_ratio_at_least("64 clients, 4 threads drive them / the engine alone",
                          light_rate / engine_rate, 0.6, "%.0f / %.0f appends a second", light_rate,
                          engine_rate);
    report_ratio_at_least("64 clients, a thread and a libtine each / the engine alone",
                          libtine_rate / engine_rate, 0.6, "%.0f / %.0f appends a second",
                          libtine_rate, engine_rate);
    StatsResponse *stats_after = stats_of(tine);
    report_note("in tined, driven by 4: %.1f context switches, %.1f us of processor time an append",
                switches / calls, cpu_ms * 1000 / calls);
    report_note("in tined, both: %.1f appends a commit",
                appends_a_commit(stats_before, stats_after));
    protobuf_c_message_free_unpacked(&stats_before->base, NULL);
    protobuf_c_message_free_unpacked(&stats_after->base, NULL);
    tine_close(tine);
    fleet_close(fleet);
    writers_close(writers);
}

void bench_append(const Options *options)
{
    if (!row_is_wanted(options, "append")) return;
    static Scene scene;
    scene_open(options, &scene);
    alone(options, &scene, /* has_operation_ids= */ true);
    alone(options, &scene, /* has_operation_ids= */ false);
    together(options, &scene);
    scene_close(options, &scene);
}
