// Help: the texts of `tine help` and `--help`, made from the table of commands.

#pragma once

#include "cli.h"

// Prints help about one command, or about tine if `command` is NULL. Returns EXIT_OK.
int help_print(Cli *cli, const Command *command);
