// tine restore: undoes tine rm.

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
        RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
        request.session_id = session.id;
        CLEANUP(message_freep) RestoreSessionResponse *reply = NULL;
        if (tine_restore_session(tine, &cli->call, &request, &reply)) {
            return cli_fail(cli, &cli->status);
        }
        if (cli->is_json) code = cli_print_json_line(cli, &reply->session->base);
    }
    return code;
}

const Command command_restore = {
    .name = "restore",
    .arguments = "SESSION…",
    .summary = "restores deleted sessions",
    .examples = {"tine restore plan", "tine ls --deleted --json | jq -r .id | xargs tine restore"},
    .argument_count_min = 1,
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
