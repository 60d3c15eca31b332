// Reads all sessions of a listing.

#include "sessions.h"

#include <stdlib.h>

#include "progress.h"

enum { PAGE_SESSIONS = 1000 };

static int read_pages(Cli *cli, ListSessionsRequest *request,
                      int (*on_session)(void *context, const Session *session), void *context)
{
    CLEANUP(message_freep) ListSessionsResponse *reply = NULL;
    request->limit = PAGE_SESSIONS;
    do {
        ListSessionsResponse *next = NULL;
        if (tine_list_sessions(cli->tine, &cli->call, request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_sessions; i++) {
            int code = on_session(context, reply->sessions[i]);
            if (code) return code;
        }
        request->cursor = reply->next_cursor;
    } while (*reply->next_cursor);
    return EXIT_OK;
}

int sessions_each(Cli *cli, ListSessionsRequest *request,
                  int (*on_session)(void *context, const Session *session), void *context)
{
    Progress *progress = progress_begin("reading sessions", NULL, 0);
    int code = read_pages(cli, request, on_session, context);
    progress_end(progress);
    return code;
}

char *project_path(const char *path, char *directory)
{
    return realpath(path, directory) ? directory : (char *)(uintptr_t)path;
}
