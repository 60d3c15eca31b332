// tine rm: deletes sessions softly.

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "json_print.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    int code = cli_connect(cli, &tine);
    for (int i = 0; !code && i < argument_count; i++) {
        SessionName session;
        code = cli_find_session(cli, arguments[i], &session);
        if (code) return code;
        SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
        request.session_id = session.id;
        CLEANUP(message_freep) SoftDeleteSessionResponse *reply = NULL;
        if (tine_soft_delete_session(tine, &cli->call, &request, &reply)) {
            return cli_fail(cli, &cli->status);
        }
        if (cli->is_json) code = cli_print_json_line(cli, &reply->session->base);
    }
    return code;
}

const Command command_rm = {
    .name = "rm",
    .arguments = "SESSION…",
    .summary = "deletes sessions; `tine restore` restores them",
    .examples = {"tine rm @last", "tine ls -q scratch --json | jq -r .id | xargs tine rm"},
    .argument_count_min = 1,
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
