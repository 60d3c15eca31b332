// Reads arguments that may be on standard input, and options that several commands share.

#pragma once

#include "cli.h"

// Reads an argument as text: the argument itself, or all of standard input for NULL and "-". The
// caller frees `*out`. EXIT_FAILED: more than a request can hold.
MUST_USE int input_read(const Cli *cli, const char *argument, char **out);

// Reads a JSON argument: the argument itself, a file for "@FILE", standard input for "-".
MUST_USE int input_read_json(const Cli *cli, const char *argument, char **out);

// Reads --unique and --suffix. EXIT_USAGE: both were given.
MUST_USE int option_slug_policy(const Cli *cli, SlugPolicy *out);

// Asks for confirmation. EXIT_OK: --yes was given, or "yes" was typed at a terminal. EXIT_USAGE:
// there is no terminal to ask at. EXIT_FAILED: something else was typed.
MUST_USE int input_confirm(const Cli *cli, const char *question);

// For CLEANUP: free.
void text_freep(char **text);
