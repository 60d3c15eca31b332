// tine help: explains tine, or one of its commands.

#include "cli.h"
#include "help.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    if (argument_count == 0) return help_print(cli, NULL);
    const Command *command = command_find(arguments[0]);
    if (command) return help_print(cli, command);
    const char *nearest = command_nearest(arguments[0]);
    return cli_say(EXIT_USAGE, "there is no command '%s'%s%s%s", arguments[0],
                   nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

const Command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "explains tine, or one of its commands",
    .examples = {"tine help", "tine help append"},
    .argument_count_max = 1,
    .run = run,
};
