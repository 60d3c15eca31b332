// GetSession: the round trip of a small read, beside echoes of the same sizes and gRPC.

#include <stdio.h>

#include "calls.h"
#include "grpc_peer.h"
#include "rows.h"
#include "ways.h"

typedef struct Scene {
    Peer tined, raw_server, nng_server, grpc_server;
    IdText session;
    Buffer request; // encoded
    size_t reply_bytes;
    char reply_file[512];
    char path[512], copy[512], other_copy[512]; // of the store: tined's, and two of this process
} Scene;

// A store with one session of some messages, and its GetSession reply in a file.
static void make_store(const Options *options, Scene *scene)
{
    Bench bench;
    const char *path = scene->path;
    bench_path(options, "get", scene->path, sizeof(scene->path));
    bench_path(options, "get.copy", scene->copy, sizeof(scene->copy));
    bench_path(options, "get.other", scene->other_copy, sizeof(scene->other_copy));
    bench_path(options, "get.reply", scene->reply_file, sizeof(scene->reply_file));
    bench_open(&bench, path, /* is_ephemeral= */ true);
    scene->session = bench_session(&bench, "a-session");
    Buffer append = append_request(scene->session.text, 300);
    bench_run_many(&bench, &append, 100);
    buffer_free(&append);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = scene->session.text;
    scene->request = request_make(METHOD_GET_SESSION, &request.base);
    Slice body = bench_run(&bench, &scene->request);
    scene->reply_bytes = buffer_size(&bench.rpc.reply);
    FILE *file = fopen(scene->reply_file, "w");
    require(file && fwrite(body.bytes, 1, body.size, file) == body.size && fclose(file) == 0,
            "cannot write %s", scene->reply_file);
    bench_close(&bench);
    bench_copy(scene->path, scene->copy);
    bench_copy(scene->path, scene->other_copy);
}

// The same call without a socket: by libtine, and by the engine alone, from an encoded request to
// an encoded reply.
typedef struct InProcess {
    GetCall libtine, direct;
    Bench bench;
    const Buffer *request;
} InProcess;

static void engine_call_way(void *context)
{
    InProcess *in_process = context;
    (void)bench_run(&in_process->bench, in_process->request);
}

static Tine *tine_open_as(const char *scheme, const char *path, unsigned flags)
{
    char url[600];
    Tine *tine;
    TineStatus status = {0};
    TineOpenOptions options = {.wait_for_server = true, .flags = flags};
    snprintf(url, sizeof(url), "%s%s", scheme, path);
    require(tine_open_with(url, &options, &status, &tine) == 0, "%s", status.message);
    return tine;
}

static void in_process_open(InProcess *out, const Scene *scene)
{
    *out = (InProcess){.request = &scene->request};
    out->libtine = (GetCall){tine_open_as("embedded:", scene->copy, 0), scene->session.text};
    out->direct = (GetCall){tine_open_as("ipc://", scene->tined.socket, TINE_DIRECT_READS),
                            scene->session.text};
    bench_open(&out->bench, scene->other_copy, /* is_ephemeral= */ true);
}

static void in_process_close(InProcess *in_process)
{
    tine_close(in_process->libtine.tine);
    tine_close(in_process->direct.tine);
    bench_close(&in_process->bench);
}

// Where the whole goes, by subtraction: each stage is what a way has that another one lacks.
typedef struct Stages {
    double whole, embedded, engine, plain, nng;
} Stages;

static void report_stages(const Stages *stages)
{
    report_note("where the %.1f us of a GetSession go:", stages->whole);
    report_note("    kernel: two sends, two receives, two wake-ups        %6.1f us", stages->plain);
    report_note("    engine: decode, check, read, encode                  %6.1f us",
                stages->engine);
    report_note("    libtine: request and envelope out, reply in          %6.1f us",
                stages->embedded - stages->engine);
    report_note("    frames, epoll, counts of connections, both sides     %6.1f us",
                stages->whole - stages->embedded - stages->plain);
    report_note("    with NNG's listener instead of ours, more            %6.1f us",
                stages->nng - stages->plain - (stages->whole - stages->embedded - stages->plain));
}

typedef struct GrpcCall {
    GrpcPeer *peer;
    const char *session;
} GrpcCall;

#if BENCH_HAS_GRPC
static void grpc_call(void *context)
{
    const GrpcCall *call = context;
    require(grpc_get_session(call->peer, call->session) > 0, "gRPC's GetSession failed");
}
#endif

static void compare(const Options *options, Scene *scene)
{
    GetCall sp = {tine_of(&scene->tined, "ipc"), scene->session.text};
    GetCall nng = {tine_of(&scene->tined, "nng+ipc"), scene->session.text};
    RawEcho raw;
    raw_echo_open(&raw, scene->raw_server.socket, scene->reply_bytes);
    size_t request_bytes = buffer_size(&scene->request);
    EchoWay raw_echo = {&raw, NULL, request_bytes, scene->reply_bytes};
    EchoWay nng_echo = {NULL, nng_echo_open(scene->nng_server.socket), request_bytes,
                        scene->reply_bytes};
    uint8_t echoed[4096];
    echo_request(echoed, request_bytes, scene->reply_bytes);
    ChannelWay sp_echo = {sp_channel_of(&scene->nng_server), slice(echoed, request_bytes), 0};
    Ways ways = {.count = 0};
    size_t ours = ways_add(&ways, "libtine, its own channel (ipc://)", get_call, &sp);
    size_t by_nng = ways_add(&ways, "libtine, libnng's channel (nng+ipc://)", get_call, &nng);
    size_t plain = ways_add(&ways, "raw Unix socket echo", echo_way_call, &raw_echo);
    size_t echo = ways_add(&ways, "libnng REQ/REP echo", echo_way_call, &nng_echo);
    size_t nng_listener =
        ways_add(&ways, "libtine's channel to the libnng echo", channel_way_call, &sp_echo);
    InProcess in_process;
    in_process_open(&in_process, scene);
    size_t embedded = ways_add(&ways, "libtine, embedded", get_call, &in_process.libtine);
    size_t direct = ways_add(&ways, "libtine, direct reads", get_call, &in_process.direct);
    size_t engine = ways_add(&ways, "the engine alone", engine_call_way, &in_process);
#if BENCH_HAS_GRPC
    GrpcCall by_grpc = {grpc_open(scene->grpc_server.socket), scene->session.text};
    size_t grpc = ways_add(&ways, "gRPC C++ unary", grpc_call, &by_grpc);
#endif
    size_t rounds = options->is_quick ? 20 : 150;
    ways_run(&ways, rounds, 40);
    report_note("GetSession: a request of %zu bytes, a reply of %zu", request_bytes,
                scene->reply_bytes);
    ways_report(&ways);
    const Way *way = ways.ways;
#if BENCH_HAS_GRPC
    report_ratio_at_most("GetSession by libtine / gRPC C++ unary",
                         way[ours].median_us / way[grpc].median_us, 0.6, "%.1f / %.1f us",
                         way[ours].median_us, way[grpc].median_us);
    grpc_close(by_grpc.peer);
#else
    report_note("GetSession by libtine / gRPC C++ unary: missing, built without libgrpc++");
#endif
    report_figure("GetSession by libtine / libnng echo", way[ours].median_us / way[echo].median_us,
                  "%.1f / %.1f us", way[ours].median_us, way[echo].median_us);
    report_figure("GetSession by libtine / raw socket echo",
                  way[ours].median_us / way[plain].median_us, "%.1f / %.1f us", way[ours].median_us,
                  way[plain].median_us);
    report_figure("GetSession by libtine's channel / by libnng's",
                  way[ours].median_us / way[by_nng].median_us, "%.1f / %.1f us",
                  way[ours].median_us, way[by_nng].median_us);
    report_figure("GetSession by direct reads / by libtine",
                  way[direct].median_us / way[ours].median_us, "%.1f / %.1f us",
                  way[direct].median_us, way[ours].median_us);
    report_stages(&(Stages){.whole = way[ours].median_us,
                            .embedded = way[embedded].median_us,
                            .engine = way[engine].median_us,
                            .plain = way[plain].median_us,
                            .nng = way[nng_listener].median_us});
    ways_free(&ways);
    in_process_close(&in_process);
    tine_close(sp.tine);
    tine_close(nng.tine);
    raw_echo_close(&raw);
    nng_echo_close(nng_echo.nng);
    sp_echo.channel->close(sp_echo.channel);
}

// What one call costs in tined: its threads' context switches and processor time.
static void count_switches(const Options *options, const Scene *scene)
{
    size_t count = options->is_quick ? 1000 : 10000;
    GetCall get = {tine_of(&scene->tined, "ipc"), scene->session.text};
    get_call(&get);
    ProcessUsage before, after;
    process_usage(scene->tined.pid, &before);
    for (size_t i = 0; i < count; i++)
        get_call(&get);
    process_usage(scene->tined.pid, &after);
    report_note("in tined: %.1f context switches and %.1f us of processor time a call, %zu threads",
                (double)(after.switches - before.switches) / (double)count,
                (after.cpu_ms - before.cpu_ms) * 1000 / (double)count, after.threads);
    tine_close(get.tine);
}

void bench_get_session(const Options *options)
{
    if (!row_is_wanted(options, "get")) return;
    Scene scene;
    make_store(options, &scene);
    tined_start(&scene.tined, NULL, scene.path);
    peer_start(&scene.raw_server, "raw", "");
    peer_start(&scene.nng_server, "nng", "");
    if (grpc_is_there()) peer_start(&scene.grpc_server, "grpc", scene.reply_file);
    compare(options, &scene);
    count_switches(options, &scene);
    if (grpc_is_there()) peer_stop(&scene.grpc_server);
    peer_stop(&scene.nng_server);
    peer_stop(&scene.raw_server);
    peer_stop(&scene.tined);
    buffer_free(&scene.request);
    remove(scene.reply_file);
}
