// Finds the records that an argument names.

#pragma once

#include "cli.h"

// Finds a session by its ID, a prefix of the ID of at least 4 characters, its slug, `@last` or
// `@last~2`, or the ID that it has at the agent it was imported from. EXIT_NOT_FOUND. EXIT_FAILED,
// with the candidates, if several match.
typedef struct SessionName {
    char id[ID_BYTES];
} SessionName;

MUST_USE int cli_find_session(Cli *cli, const char *text, SessionName *out);

typedef SessionName MessageName;

// Finds an entry of a session by its ID, a prefix of the ID of at least 4 characters, `@head`, or
// `@head~2` for the second message before it. EXIT_NOT_FOUND. EXIT_FAILED, with the candidates, if
// several match.
MUST_USE int cli_find_message(Cli *cli, const char *session_id, const char *text, MessageName *out);

// Reads "provider/name", or "name" with the provider "unknown". Changes `text`; `out` points into
// it. EXIT_USAGE.
MUST_USE int cli_read_model(const Cli *cli, char *text, ModelRef *out);
