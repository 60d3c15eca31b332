// tine rename: sets the slug or the title of a session.

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

static int set_title(Cli *cli, char *session_id, const char *title)
{
    SessionField mask[] = {SESSION_FIELD_TITLE};
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    request.session_id = session_id;
    request.mask = mask;
    request.n_mask = 1;
    request.title = (char *)(uintptr_t)title;
    CLEANUP(message_freep) UpdateSessionResponse *reply = NULL;
    if (tine_update_session(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    return cli->is_json ? cli_print_json(cli, &reply->session->base) : EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    SessionName session;
    RenameSessionRequest request = RENAME_SESSION_REQUEST__INIT;
    int code = option_slug_policy(cli, &request.slug_policy);
    if (!code) code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[0], &session);
    if (code) return code;
    const char *title = option_text(cli, "title");
    if (argument_count == 1) {
        if (title) return set_title(cli, session.id, title);
        return cli_usage(cli, "it needs a slug, or --title");
    }
    if (title) return cli_usage(cli, "use a slug or --title, not both");
    request.session_id = session.id;
    request.slug = arguments[1];
    CLEANUP(message_freep) RenameSessionResponse *reply = NULL;
    if (tine_rename_session(tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->session->base);
    if (option_is_given(cli, "suffix")) print(&cli->out, "%s\n", reply->session->slug);
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"unique", 0, NULL, "fail if another session has this slug"},
    {"suffix", 0, NULL, "if a session has it, add -2, -3, …, and print the result"},
    {"title", 't', "TEXT", "set the title instead"},
    {NULL, 0, NULL, NULL},
};

const Command command_rename = {
    .name = "rename",
    .arguments = "SESSION [SLUG]",
    .summary = "changes the slug or the title of a session; '' removes it",
    .options = OPTIONS,
    .examples = {"tine rename @last plan --unique", "tine rename plan --title 'The plan'"},
    .argument_count_min = 1,
    .argument_count_max = 2,
    .run = run,
};
