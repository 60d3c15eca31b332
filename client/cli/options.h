// The command line: the command, its options and its arguments.

#pragma once

#include "cli.h"

// Reads the command line into `cli`. `*out_arguments` are the `*out_count` arguments that are not
// options, moved to the front of `arguments`, then NULL. EXIT_USAGE; a failure was printed.
MUST_USE int options_read(Cli *cli, int argument_count, char **arguments, int *out_count,
                          char ***out_arguments);

// Returns the value of the last option of this name; NULL if it was not given. It must be an option
// of the command or a global one.
const char *option_text(const Cli *cli, const char *name);
bool option_is_given(const Cli *cli, const char *name);

// Returns the value of an option that may be repeated: `index` counts from 0; NULL after the last.
const char *option_text_at(const Cli *cli, const char *name, size_t index);

// Reads an integer from `min` to `max`. Leaves `in_out` as it is if the option was not given.
// EXIT_USAGE; a failure was printed.
MUST_USE int option_number(const Cli *cli, const char *name, int64_t min, int64_t max,
                           int64_t *in_out);

// Reads one of `names` (NULL-terminated) as its index. Leaves `in_out` as it is if the option was
// not given. EXIT_USAGE; a failure was printed.
MUST_USE int option_choice(const Cli *cli, const char *name, const char *const *names, int *in_out);

// Options of all commands, allowed anywhere on the line.
extern const Option GLOBAL_OPTIONS[];
