// Commands of `tine`. One file per command, client/cli/command_<name>.c, defines one `const Command
// command_<name>`; command.c lists them all.
//
// Parsing, `--help`, the manual page and the completions are all made from this table.

#pragma once

#include <stddef.h>

typedef struct Cli Cli;

typedef struct Option {
    const char *name;       // without "--"; NULL ends the list
    char letter;            // the short form, or 0
    const char *value_name; // "DIR"; NULL for a flag
    const char *help;       // one line, lower case, no full stop
} Option;

enum { COMMAND_EXAMPLES_MAX = 4, COMMAND_ANY_COUNT = -1 };

typedef struct Command {
    const char *name;      // "restore-backup"
    const char *arguments; // "SESSION [TEXT]"; "" if it takes none
    const char *summary;   // "adds a message to a session": one line
    const char *details;   // sentences, lines of at most 78 columns; NULL: none
    const Option *options; // the last has no name; NULL: only the global options
    const char *examples[COMMAND_EXAMPLES_MAX + 1]; // at least two lines for a shell
    int argument_count_min, argument_count_max;     // COMMAND_ANY_COUNT: any number

    // Runs the command. `arguments` are those that are not options, as many as allowed, then NULL.
    // Options are read with option_text and the like (options.h). Returns an ExitCode.
    int (*run)(Cli *cli, int argument_count, char **arguments);
} Command;

// All commands, in the order of `tine help`; NULL ends the list.
extern const Command *const COMMANDS[];

// Returns the command of this name, or NULL.
const Command *command_find(const char *name);

// Returns the name of a command that was probably meant, or NULL.
const char *command_nearest(const char *name);
