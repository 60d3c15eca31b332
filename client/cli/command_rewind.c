// tine rewind: moves the head of a session back. The log keeps everything.

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "json_print.h"
#include "rewind.h"

int rewind_to(Cli *cli, const char *session, const char *message)
{
    Tine *tine;
    SessionName name;
    MessageName point = {""};
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, session, &name);
    if (!code && message) code = cli_find_message(cli, name.id, message, &point);
    if (code) return code;
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    request.session_id = name.id;
    request.message_id = point.id;
    CLEANUP(message_freep) RewindSessionResponse *reply = NULL;
    if (tine_rewind_session(tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->session->base);
    if (*point.id) print(&cli->out, "%s\n", reply->session->head_id);
    return EXIT_OK;
}

static int run_rewind(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    return rewind_to(cli, arguments[0], arguments[1]);
}

const Command command_rewind = {
    .name = "rewind",
    .arguments = "SESSION MESSAGE",
    .summary = "moves the head of a session back to a message, and prints its ID",
    .details = "Later messages leave the history, but `tine call ListMessages` still lists\n"
               "them, and earlier forks keep them.",
    .examples = {"tine rewind @last @head~1", "tine rewind plan 01JD0E3R9M5SVQ6AVTCDM1SB4K"},
    .argument_count_min = 2,
    .argument_count_max = 2,
    .run = run_rewind,
};
