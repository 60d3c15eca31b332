// What commands read besides their arguments: standard input, and options that several share.

#pragma once

#include "cli.h"

// An argument as text: itself, or all of standard input for NULL and "-". `*out` is the caller's,
// freed with free. EXIT_FAILED: more than a request may hold.
MUST_USE int input_read(const Cli *cli, const char *argument, char **out);

// A JSON argument: itself, a file for "@FILE", standard input for "-".
MUST_USE int input_read_json(const Cli *cli, const char *argument, char **out);

// --unique and --suffix. EXIT_USAGE.
MUST_USE int option_slug_policy(const Cli *cli, SlugPolicy *out);

// Whether to go on: EXIT_OK with --yes, or when "yes" is typed at a terminal. EXIT_USAGE: nobody is
// there to ask. EXIT_FAILED: something else was typed.
MUST_USE int input_confirm(const Cli *cli, const char *question);

// For CLEANUP: free.
void text_freep(char **text);
