// tine sync: waits until all acknowledged writes are on disk.

#include "cli.h"
#include "connect.h"
#include "format.h"
#include "os/clock.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    TineCallOptions options = cli->call;
    options.sync = true; // the answer to any call waits for all earlier writes
    HealthRequest request = HEALTH_REQUEST__INIT;
    CLEANUP(message_freep) HealthResponse *reply = NULL;
    int64_t begun_ns = clock_monotonic_ns();
    if (tine_health(tine, &options, &request, &reply)) return cli_fail(cli, &cli->status);
    int64_t took_us = (clock_monotonic_ns() - begun_ns) / 1000;
    if (cli->is_json) {
        print(&cli->out, "{\"took_us\":%lld}\n", (long long)took_us);
    } else {
        print(&cli->out, "all acknowledged writes are on disk, after %s\n",
              format_duration(took_us).text);
    }
    return EXIT_OK;
}

const Command command_sync = {
    .name = "sync",
    .arguments = "",
    .summary = "waits until all acknowledged writes are on disk",
    .details = "A tined with --durability relaxed flushes acknowledged writes a little later;\n"
               "this asks it to flush now. With --durability sync there is nothing to wait\n"
               "for. `tine stats` shows how much is not flushed.",
    .examples = {"tine sync", "tine append plan 'keep this' && tine sync"},
    .run = run,
};
