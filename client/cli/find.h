// Finding the records that an argument names. (Sessions: cli_find_session in cli.h.)

#pragma once

#include "cli.h"

typedef SessionName MessageName;

// An entry of a session: by id, by a prefix of 4 characters or more, `@head`, `@head~2` for the
// second before it in the history. EXIT_NOT_FOUND; EXIT_FAILED with the candidates.
MUST_USE int cli_find_message(Cli *cli, const char *session_id, const char *text, MessageName *out);

// "provider/name" or "name", whose provider is then "unknown". Points into `text`, which it
// changes. EXIT_USAGE.
MUST_USE int cli_read_model(const Cli *cli, char *text, ModelRef *out);
