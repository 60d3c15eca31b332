// A history over a socket: 9 sessions of 25 messages of 1 KiB in one reply, beside an echo of that
// size.

#include "calls.h"
#include "os/clock.h"
#include "rows.h"
#include "ways.h"

enum { FORKS = 8, MESSAGES_PER_SESSION = 25, TEXT_BYTES = 1024 };

static IdText make_chain(const Options *options, char *path, size_t path_bytes_max)
{
    Bench bench;
    bench_path(options, "history", path, path_bytes_max);
    bench_open(&bench, path, /* is_ephemeral= */ true);
    IdText leaf = bench_session(&bench, "");
    for (size_t i = 0;; i++) {
        Buffer append = append_request(leaf.text, TEXT_BYTES);
        bench_run_many(&bench, &append, MESSAGES_PER_SESSION);
        buffer_free(&append);
        if (i == FORKS) break;
        leaf = bench_fork(&bench, leaf.text);
    }
    bench_close(&bench);
    return leaf;
}

static void history_call(void *context)
{
    const GetCall *get = context;
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)get->session;
    MessagesForSessionResponse *response;
    require(tine_messages_for_session(get->tine, NULL, &request, &response) == 0,
            "MessagesForSession failed");
    require(response->n_messages == (FORKS + 1) * MESSAGES_PER_SESSION, "a history with a hole");
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

void bench_history(const Options *options)
{
    if (!row_is_wanted(options, "history")) return;
    char path[512];
    IdText leaf = make_chain(options, path, sizeof(path));
    Peer tined, nng_server;
    tined_start(&tined, NULL, path);
    peer_start(&nng_server, "nng", "");

    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = leaf.text;
    Buffer bytes = request_make(METHOD_MESSAGES_FOR_SESSION, &request.base);
    ChannelWay ours = {sp_channel_of(&tined), buffer_slice(&bytes), 0};
    channel_way_call(&ours);
    GetCall decoded = {tine_of(&tined, "ipc"), leaf.text};
    EchoWay echo = {NULL, nng_echo_open(nng_server.socket), buffer_size(&bytes), ours.reply_bytes};
    uint8_t echoed[4096];
    echo_request(echoed, buffer_size(&bytes), ours.reply_bytes);
    ChannelWay sp_echo = {sp_channel_of(&nng_server), slice(echoed, buffer_size(&bytes)), 0};

    Ways ways = {.count = 0};
    size_t history = ways_add(&ways, "history, not decoded", channel_way_call, &ours);
    size_t floor = ways_add(&ways, "libnng echo with a reply of that size", echo_way_call, &echo);
    ways_add(&ways, "libtine's channel to the libnng echo", channel_way_call, &sp_echo);
    ways_add(&ways, "history, decoded", history_call, &decoded);
    ways_run(&ways, options->is_quick ? 20 : 150, 20);
    report_note("history: 9 sessions x 25 x 1 KiB, a reply of %zu bytes", ours.reply_bytes);
    ways_report(&ways);
    double history_us = ways.ways[history].median_us, echo_us = ways.ways[floor].median_us;
    report_ratio_at_most("history by RPC / libnng echo of its size", history_us / echo_us, 1.3,
                         "%.0f / %.0f us", history_us, echo_us);
    ways_free(&ways);
    ours.channel->close(ours.channel);
    sp_echo.channel->close(sp_echo.channel);
    tine_close(decoded.tine);
    nng_echo_close(echo.nng);
    buffer_free(&bytes);
    peer_stop(&nng_server);
    peer_stop(&tined);
}
