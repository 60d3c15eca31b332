// Help.

#include "help.h"

#include <string.h>

#include "options.h"

static void print_title(const Cli *cli, const char *title)
{
    print(&cli->out, "\n" PRINT_BOLD "%s" PRINT_NORMAL "\n", title);
}

static void print_options(const Cli *cli, const Option *options)
{
    for (; options->name; options++) {
        char name[64], letter[8] = "    ";
        if (options->letter) snprintf(letter, sizeof(letter), "-%c, ", options->letter);
        snprintf(name, sizeof(name), "%s--%s%s%s", letter, options->name,
                 options->value_name ? " " : "", options->value_name ? options->value_name : "");
        print(&cli->out, "  %-26s %s\n", name, options->help);
    }
}

static void print_command(const Cli *cli, const Command *command)
{
    print(&cli->out, "tine %s: %s\n\n    tine %s%s%s%s\n", command->name, command->summary,
          command->name, command->options ? " [OPTION…]" : "", *command->arguments ? " " : "",
          command->arguments);
    if (command->details) {
        print(&cli->out, "\n");
        print_block(&cli->out, slice_of(command->details), "", 0);
    }
    if (command->options) {
        print_title(cli, "Options");
        print_options(cli, command->options);
    }
    print_title(cli, "Examples");
    for (size_t i = 0; command->examples[i]; i++)
        print_block(&cli->out, slice_of(command->examples[i]), "    ", 0);
    print(&cli->out, "\n`tine help` lists the options that all commands have.\n");
}

int help_print(Cli *cli, const Command *command)
{
    cli_page(cli);
    if (command) {
        print_command(cli, command);
        return EXIT_OK;
    }
    print(&cli->out, "tine: stores the conversations of AI agents\n\n"
                     "    tine COMMAND [OPTION…] [ARGUMENT…]\n");
    print_title(cli, "Commands");
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] == '_') continue; // not for people
        print(&cli->out, "  %-16s %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
    }
    print_title(cli, "Options of all commands");
    print_options(cli, GLOBAL_OPTIONS);
    print_title(cli, "Naming a session");
    print(&cli->out,
          "  its ID, the first 4 or more characters of the ID, its slug, @last for the most\n"
          "  recently active one, @last~1 for the one before\n");
    print_title(cli, "Exit codes");
    print(&cli->out, "  0 done, 1 failed, 2 wrong usage, 3 not found, 4 tined cannot be reached\n");
    print_title(cli, "Examples");
    print(&cli->out, "    tine new --slug plan && tine append plan 'Where do we begin?'\n"
                     "    tine log plan\n");
    return EXIT_OK;
}
