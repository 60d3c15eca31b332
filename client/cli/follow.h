// Follows a session: reports its messages as they are appended.

#pragma once

#include "cli.h"

typedef struct Follow Follow;

// Starts watching the session: every message that is appended from now on will be reported. Borrows
// `cli`. Returns an ExitCode.
MUST_USE int follow_open(Cli *cli, const char *session_id, Follow **out_follow);

// Calls `on_message`, which borrows the message, for each new message, until the session is purged
// or tined is away for too long. Returns an ExitCode.
int follow_run(Follow *follow, void (*on_message)(void *context, const Message *message),
               void *context);

// For CLEANUP.
void follow_closep(Follow **follow);
