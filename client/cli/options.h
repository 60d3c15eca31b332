// The command line: which command, which options, which arguments.

#pragma once

#include "cli.h"

// Reads the command line into `cli`. `*out_arguments`, of which there are `*out_count`, are those
// that are not options; they are moved to the front of `arguments`, and ended by NULL. EXIT_USAGE,
// said.
MUST_USE int options_read(Cli *cli, int argument_count, char **arguments, int *out_count,
                          char ***out_arguments);
