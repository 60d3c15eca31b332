// Commands: what `tine` can be told. One file per command, client/cli/command_<name>.c, which
// defines one `const Command command_<name>`; command.c lists them all.
//
// The table is everything that is said about a command: parsing, `--help`, the man pages and the
// completions are all made from it.

#pragma once

#include <stddef.h>

typedef struct Cli Cli;

typedef struct Option {
    const char *name;       // without "--"; NULL ends a list
    char letter;            // its short form, or 0
    const char *value_name; // "DIR"; NULL: it takes no value
    const char *help;       // one line, lower case, no full stop
} Option;

enum { COMMAND_EXAMPLES_MAX = 4, COMMAND_ANY_COUNT = -1 };

typedef struct Command {
    const char *name;      // "restore-backup"
    const char *arguments; // "SESSION [TEXT]"; "" if it takes none
    const char *summary;   // "adds a message to a session": one line
    const char *details;   // whole sentences, lines of at most 78 columns; NULL: nothing to add
    const Option *options; // ended by one without a name; NULL: only the global ones
    const char *examples[COMMAND_EXAMPLES_MAX + 1]; // at least two, each a line for a shell
    int argument_count_min, argument_count_max;     // COMMAND_ANY_COUNT: any number

    // Does it. `arguments` are those that are not options, as many as allowed, ended by NULL; the
    // options are asked for with option_text and its like (cli.h). Returns an ExitCode.
    int (*run)(Cli *cli, int argument_count, char **arguments);
} Command;

// All commands, in the order of `tine help`; NULL ends the list.
extern const Command *const COMMANDS[];

// By name; NULL if there is none.
const Command *command_find(const char *name);

// The name that was probably meant, or NULL.
const char *command_nearest(const char *name);
