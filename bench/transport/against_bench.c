// Two tineds side by side on copies of one store. The same client calls both, so the figures differ
// by the servers alone.

#include <stdio.h>

#include "calls.h"
#include "fleet.h"
#include "rows.h"
#include "ways.h"

enum { SIDES = 2, MESSAGES = 225, TEXT_BYTES = 1024 };

typedef struct Side {
    Peer tined;
    GetCall get;
    ChannelWay history;
    Fleet *fleet;
} Side;

static void make_store(const char *path, IdText *sessions)
{
    Bench bench;
    bench_open(&bench, path, /* is_ephemeral= */ true);
    for (size_t i = 0; i < WRITERS; i++)
        sessions[i] = bench_session(&bench, "a-session");
    Buffer append = append_request(sessions[0].text, TEXT_BYTES);
    bench_run_many(&bench, &append, MESSAGES);
    buffer_free(&append);
    bench_close(&bench);
}

static void one_by_one(const Options *options, Side *sides)
{
    static const char *const NAMES[][SIDES] = {
        {"GetSession, this", "GetSession, the other"},
        {"history of 225 x 1 KiB, this", "history, the other"},
    };
    Ways gets = {.count = 0}, histories = {.count = 0};
    for (size_t i = 0; i < SIDES; i++) {
        ways_add(&gets, NAMES[0][i], get_call, &sides[i].get);
        ways_add(&histories, NAMES[1][i], channel_way_call, &sides[i].history);
    }
    size_t rounds = options->is_quick ? 50 : 300;
    ways_run(&gets, rounds, 40);
    ways_run(&histories, rounds, 20);
    ways_report(&gets);
    ways_report(&histories);
    report_figure("GetSession, this / the other", gets.ways[0].median_us / gets.ways[1].median_us,
                  " ");
    report_figure("history, this / the other",
                  histories.ways[0].median_us / histories.ways[1].median_us, " ");
    ways_free(&gets);
    ways_free(&histories);
}

static void together(const Options *options, Side *sides)
{
    enum { ROUNDS = 15 };
    double rates[SIDES][ROUNDS], median[SIDES], cpu_ms[SIDES] = {0, 0}, switches[SIDES] = {0, 0};
    size_t count = options->is_quick ? 20 : 100;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SIDES; i++) {
            ProcessUsage before, after;
            process_usage(sides[i].tined.pid, &before);
            rates[i][round] = fleet_run_light(sides[i].fleet, count);
            process_usage(sides[i].tined.pid, &after);
            cpu_ms[i] += after.cpu_ms - before.cpu_ms;
            switches[i] += (double)(after.switches - before.switches);
        }
    }
    double calls = (double)(ROUNDS * WRITERS * count);
    for (size_t i = 0; i < SIDES; i++) {
        median[i] = median_of(rates[i], ROUNDS);
        report_note("%s: %.0f appends a second of 64 clients, %.1f us and %.1f switches each",
                    i == 0 ? "this" : "the other", median[i], cpu_ms[i] * 1000 / calls,
                    switches[i] / calls);
    }
    report_figure("appends a second, this / the other", median[0] / median[1], " ");
}

void bench_against(const Options *options)
{
    static IdText sessions[WRITERS];
    Side sides[SIDES];
    char paths[SIDES][512];
    bench_path(options, "this", paths[0], sizeof(paths[0]));
    bench_path(options, "other", paths[1], sizeof(paths[1]));
    make_store(paths[0], sessions);
    bench_copy(paths[0], paths[1]);
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = sessions[0].text;
    Buffer history = request_make(METHOD_MESSAGES_FOR_SESSION, &request.base);
    for (size_t i = 0; i < SIDES; i++) {
        Side *side = &sides[i];
        tined_start(&side->tined, i == 0 ? NULL : options->against, paths[i]);
        side->get = (GetCall){tine_of(&side->tined, "ipc"), sessions[1].text};
        side->history = (ChannelWay){sp_channel_of(&side->tined), buffer_slice(&history), 0};
        side->fleet = fleet_open(&side->tined, sessions);
    }
    one_by_one(options, sides);
    together(options, sides);
    for (size_t i = 0; i < SIDES; i++) {
        fleet_close(sides[i].fleet);
        sides[i].history.channel->close(sides[i].history.channel);
        tine_close(sides[i].get.tine);
        peer_stop(&sides[i].tined);
    }
    buffer_free(&history);
}
