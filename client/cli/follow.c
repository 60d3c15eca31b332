// Follows a session: events tell which message is new, and a call fetches it.

#include "follow.h"

#include <stdlib.h>
#include <string.h>

struct Follow {
    Cli *cli; // borrowed
    TineWatch *watch;
};

int follow_open(Cli *cli, const char *session_id, Follow **out_follow)
{
    Follow *follow = calloc(1, sizeof(Follow));
    if (!follow) return cli_say(EXIT_FAILED, "out of memory");
    follow->cli = cli;
    TineWatchOptions options = {.session_id = session_id};
    if (tine_watch(cli->tine, &options, &cli->status, &follow->watch)) {
        free(follow);
        return cli_fail(cli, &cli->status);
    }
    *out_follow = follow;
    return EXIT_OK;
}

static int hand_over(Follow *follow, const Event *event,
                     void (*on_message)(void *context, const Message *message), void *context)
{
    Cli *cli = follow->cli;
    bool is_new =
        strcmp(event->type, "message.appended") == 0 || strcmp(event->type, "marker.added") == 0;
    if (!is_new || !*event->message_id) return EXIT_OK;
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = event->message_id;
    CLEANUP(message_freep) GetMessageResponse *reply = NULL;
    int code = tine_get_message(cli->tine, &cli->call, &request, &reply);
    if (code == STATUS_NOT_FOUND) return EXIT_OK; // purged in the meantime
    if (code) return cli_fail(cli, &cli->status);
    on_message(context, reply->message);
    return EXIT_OK;
}

int follow_run(Follow *follow, void (*on_message)(void *context, const Message *message),
               void *context)
{
    int code = EXIT_OK;
    while (!code) {
        CLEANUP(message_freep) Event *event = NULL;
        if (tine_watch_next(follow->watch, -1, &follow->cli->status, &event)) {
            return cli_fail(follow->cli, &follow->cli->status);
        }
        if (event) code = hand_over(follow, event, on_message, context);
    }
    return code;
}

void follow_closep(Follow **follow)
{
    if (!*follow) return;
    tine_watch_close((*follow)->watch);
    free(*follow);
}
