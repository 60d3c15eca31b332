// tine ping: shows whether tined answers, and how fast.

#include "cli.h"
#include "connect.h"
#include "options.h"
#include "os/clock.h"
#include "safe_mode.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    int64_t count = 1;
    code = option_number(cli, "count", 1, 1000000, &count);
    for (int64_t i = 0; !code && i < count; i++) {
        HealthRequest request = HEALTH_REQUEST__INIT;
        CLEANUP(message_freep) HealthResponse *reply = NULL;
        int64_t begun_ns = clock_monotonic_ns();
        if (tine_health(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
        int64_t took_us = (clock_monotonic_ns() - begun_ns) / 1000;
        if (cli->is_json) {
            print(&cli->out, "{\"ready\":%s,\"took_us\":%lld}\n", reply->ready ? "true" : "false",
                  (long long)took_us);
        } else {
            print(&cli->out, "%s: %s, %lld us\n", cli->url, reply->ready ? "ready" : "not ready",
                  (long long)took_us);
        }
        if (!reply->ready) code = EXIT_UNAVAILABLE;
    }
    if (!code && !cli->is_json && safe_mode_ask(cli).is_on) {
        cli_note("tined is in safe mode: it writes nothing (tined --help)\n");
    }
    return code;
}

static const Option OPTIONS[] = {
    {"count", 'n', "N", "ask N times (default: 1)"},
    {NULL, 0, NULL, NULL},
};

const Command command_ping = {
    .name = "ping",
    .arguments = "",
    .summary = "asks whether tined is ready, and measures how long that takes",
    .options = OPTIONS,
    .examples = {"tine ping", "tine ping -n 10 --no-start"},
    .run = run,
};
