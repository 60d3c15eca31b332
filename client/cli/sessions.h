// Going through all sessions that a request lists, a page at a time.

#pragma once

#include "cli.h"

// Hands each session to `on_session`, which borrows it and returns an ExitCode; the first that is
// not EXIT_OK ends it. `request` is changed. Shows progress. Returns an ExitCode.
int sessions_each(Cli *cli, ListSessionsRequest *request,
                  int (*on_session)(void *context, const Session *session), void *context);

// "." and other paths as they are from the root, in `directory` (PATH_MAX bytes); what is no path
// here is returned as it is.
char *project_path(const char *path, char *directory);
