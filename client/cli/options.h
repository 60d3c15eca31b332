// The command line: which command, which options, which arguments.

#pragma once

#include "cli.h"

// Reads the command line into `cli`. `*out_arguments`, of which there are `*out_count`, are those
// that are not options; they are moved to the front of `arguments`, and ended by NULL. EXIT_USAGE,
// said.
MUST_USE int options_read(Cli *cli, int argument_count, char **arguments, int *out_count,
                          char ***out_arguments);

// The value of the last option of this name; NULL if it was not given. The name must be one of the
// command's or a global one.
const char *option_text(const Cli *cli, const char *name);
bool option_is_given(const Cli *cli, const char *name);

// One option, given more than once: `index` counts from 0, NULL ends it.
const char *option_text_at(const Cli *cli, const char *name, size_t index);

// A whole number from `min` to `max`; left as it is if the option was not given. EXIT_USAGE, said.
MUST_USE int option_number(const Cli *cli, const char *name, int64_t min, int64_t max,
                           int64_t *in_out);

// One of `names` (NULL-terminated): its index. Left as it is if not given. EXIT_USAGE, said.
MUST_USE int option_choice(const Cli *cli, const char *name, const char *const *names, int *in_out);

// The options that every command takes, wherever on the line.
extern const Option GLOBAL_OPTIONS[];
