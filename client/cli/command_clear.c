// tine clear: rewinds a session to the empty history.

#include "cli.h"
#include "rewind.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    return rewind_to(cli, arguments[0], NULL);
}

const Command command_clear = {
    .name = "clear",
    .arguments = "SESSION",
    .summary = "empties the history of a session; its log keeps everything",
    .examples = {"tine clear @last", "tine clear plan --json"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
