// Help: what `tine help` and `--help` print, made from the table of commands.

#pragma once

#include "cli.h"

// About one command, or about tine when `command` is NULL. Returns EXIT_OK.
int help_print(Cli *cli, const Command *command);
