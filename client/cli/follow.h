// Following a session: its messages, as they are appended.

#pragma once

#include "cli.h"

typedef struct Follow Follow;

// Begins to watch the session: what is appended from now on will be seen. Borrows `cli`. Returns an
// ExitCode.
MUST_USE int follow_open(Cli *cli, const char *session_id, Follow **out_follow);

// Hands every message that is appended to `on_message`, which borrows it, until the session is
// purged or tined is gone for too long. Returns an ExitCode.
int follow_run(Follow *follow, void (*on_message)(void *context, const Message *message),
               void *context);

// For CLEANUP.
void follow_closep(Follow **follow);
