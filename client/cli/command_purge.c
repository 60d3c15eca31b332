// tine purge: deletes a session permanently.

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    Tine *tine;
    SessionName session;
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[0], &session);
    if (code) return code;
    GetSessionRequest wanted = GET_SESSION_REQUEST__INIT;
    wanted.session_id = session.id;
    CLEANUP(message_freep) GetSessionResponse *found = NULL;
    if (tine_get_session(tine, &cli->call, &wanted, &found)) return cli_fail(cli, &cli->status);
    char question[128];
    snprintf(question, sizeof(question), "%s and its %llu messages will be deleted permanently.",
             session.id, (unsigned long long)found->session->message_count);
    code = input_confirm(cli, question);
    if (code) return code;

    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = session.id;
    request.keep_for_forks = option_is_given(cli, "keep-for-forks");
    CLEANUP(message_freep) PurgeSessionResponse *reply = NULL;
    if (tine_purge_session(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
    if (cli->is_json) return cli_print_json(cli, &reply->base);
    if (reply->kept_for_forks) {
        print(&cli->out,
              "Forks still read its messages: they are kept until the forks are gone.\n");
    }
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"keep-for-forks", 0, NULL, "keep what its forks still read, until they are gone"},
    {"yes", 'y', NULL, "do not ask"},
    {NULL, 0, NULL, NULL},
};

const Command command_purge = {
    .name = "purge",
    .arguments = "SESSION",
    .summary = "deletes a session permanently, with everything in it",
    .options = OPTIONS,
    .examples = {"tine purge plan", "tine purge 01JD0E3R --keep-for-forks --yes"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
