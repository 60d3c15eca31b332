// Reads all sessions of a listing, page by page.

#pragma once

#include "cli.h"

// Calls `on_session`, which borrows the session, for each session; ends when it returns something
// other than EXIT_OK. Changes `request`. Shows progress. Returns an ExitCode.
int sessions_each(Cli *cli, ListSessionsRequest *request,
                  int (*on_session)(void *context, const Session *session), void *context);

// Returns a path as an absolute one, in `directory` (PATH_MAX bytes). Returns `path` itself if it
// does not exist here.
char *project_path(const char *path, char *directory);
