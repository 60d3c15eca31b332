// Help.

#include "help.h"

#include <string.h>

static void print_title(const Cli *cli, const char *title)
{
    printf(cli->has_colour ? "\n\033[1m%s\033[0m\n" : "\n%s\n", title);
}

static void print_options(const Option *options)
{
    for (; options->name; options++) {
        char name[64], letter[8] = "    ";
        if (options->letter) snprintf(letter, sizeof(letter), "-%c, ", options->letter);
        snprintf(name, sizeof(name), "%s--%s%s%s", letter, options->name,
                 options->value_name ? " " : "", options->value_name ? options->value_name : "");
        printf("  %-26s %s\n", name, options->help);
    }
}

static void print_command(const Cli *cli, const Command *command)
{
    printf("tine %s: %s\n\n    tine %s%s%s%s\n", command->name, command->summary, command->name,
           command->options ? " [OPTION…]" : "", *command->arguments ? " " : "",
           command->arguments);
    if (command->details) printf("\n%s\n", command->details);
    if (command->options) {
        print_title(cli, "Options");
        print_options(command->options);
    }
    print_title(cli, "Examples");
    for (size_t i = 0; command->examples[i]; i++)
        printf("    %s\n", command->examples[i]);
    printf("\n`tine help` says which options all commands have.\n");
}

int help_print(Cli *cli, const Command *command)
{
    cli_page(cli);
    if (command) {
        print_command(cli, command);
        return EXIT_OK;
    }
    printf("tine: the conversations of AI agents, at the command line\n\n"
           "    tine COMMAND [OPTION…] [ARGUMENT…]\n");
    print_title(cli, "Commands");
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] == '_') continue; // for scripts
        printf("  %-16s %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
    }
    print_title(cli, "Options of all commands");
    print_options(GLOBAL_OPTIONS);
    print_title(cli, "Naming a session");
    printf("  its id, the first 4 or more characters of it, its slug, @last for the one that was\n"
           "  active last, @last~1 for the one before\n");
    print_title(cli, "Exit codes");
    printf("  0 done, 1 failed, 2 wrong usage, 3 not found, 4 no tined to be reached\n");
    print_title(cli, "Examples");
    printf("    tine new --slug plan && tine append plan 'Where do we begin?'\n"
           "    tine log plan\n");
    return EXIT_OK;
}
