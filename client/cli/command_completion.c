// tine completion: prints the script that makes a shell complete command lines of tine.

#include <string.h>

#include "cli.h"
#include "completion.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    const char *script = completion_script(arguments[0]);
    if (!script) return cli_usage(cli, "'%s' is not one of: bash, zsh, fish", arguments[0]);
    print_block(&cli->out, slice_of(script), "", 0);
    return EXIT_OK;
}

const Command command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "prints a completion script for a shell",
    .details = "It completes commands, options, sessions and messages.\n"
               "An installed tine has them in place. To load one by hand:\n"
               "  bash: eval \"$(tine completion bash)\" in ~/.bashrc\n"
               "  zsh:  eval \"$(tine completion zsh)\" in ~/.zshrc, after compinit\n"
               "  fish: tine completion fish > ~/.config/fish/completions/tine.fish",
    .examples = {"eval \"$(tine completion bash)\"",
                 "tine completion fish > ~/.config/fish/completions/tine.fish"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
