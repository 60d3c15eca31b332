// Finding the records that an argument names.

#pragma once

#include "cli.h"

// Finds a session by what people call it: its ID, a prefix of it of 4 characters or more, its slug,
// `@last` or `@last~2`, or the ID that it has at the agent it was imported from. EXIT_NOT_FOUND;
// EXIT_FAILED with the candidates when several fit.
typedef struct SessionName {
    char id[ID_BYTES];
} SessionName;

MUST_USE int cli_find_session(Cli *cli, const char *text, SessionName *out);

typedef SessionName MessageName;

// An entry of a session: by id, by a prefix of 4 characters or more, `@head`, `@head~2` for the
// second before it in the history. EXIT_NOT_FOUND; EXIT_FAILED with the candidates.
MUST_USE int cli_find_message(Cli *cli, const char *session_id, const char *text, MessageName *out);

// "provider/name" or "name", whose provider is then "unknown". Points into `text`, which it
// changes. EXIT_USAGE.
MUST_USE int cli_read_model(const Cli *cli, char *text, ModelRef *out);
