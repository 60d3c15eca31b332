// tine fork: creates a session that begins with the history of another one.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

enum { MODEL_BYTES_MAX = 600 };

static int fill_point(Cli *cli, ForkSessionRequest *request, MessageName *point)
{
    const char *through = option_text(cli, "at"), *before = option_text(cli, "before");
    if (through && before) return cli_usage(cli, "use --at or --before, not both");
    if (!through && !before) {
        request->fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
        request->at_head = true;
        return EXIT_OK;
    }
    int code = cli_find_message(cli, request->session_id, through ? through : before, point);
    if (through) {
        request->fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
        request->through_message_id = point->id;
    } else {
        request->fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID;
        request->before_message_id = point->id;
    }
    return code;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    Tine *tine;
    SessionName source;
    MessageName point;
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    ModelRef model;
    char model_text[MODEL_BYTES_MAX];
    int code = option_slug_policy(cli, &request.slug_policy);
    if (!code) code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[0], &source);
    if (code) return code;
    request.session_id = source.id;
    code = fill_point(cli, &request, &point);
    if (!code && option_text(cli, "model")) {
        snprintf(model_text, sizeof(model_text), "%s", option_text(cli, "model"));
        code = cli_read_model(cli, model_text, &model);
        request.model = &model;
    }
    if (code) return code;
    const char *slug = option_text(cli, "slug");
    if (slug) request.slug = (char *)(uintptr_t)slug;
    CLEANUP(message_freep) ForkSessionResponse *reply = NULL;
    if (tine_fork_session(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
    if (cli->is_json) return cli_print_json(cli, &reply->session->base);
    print(&cli->out, "%s\n", reply->session->id);
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"at", 0, "MESSAGE", "keep the history through this message (default: all)"},
    {"before", 0, "MESSAGE", "keep the history before this message"},
    {"slug", 's', "SLUG", "name of the fork"},
    {"unique", 0, NULL, "fail if another session has this slug"},
    {"suffix", 0, NULL, "if a session has it, add -2, -3, …"},
    {"model", 'm', "MODEL", "PROVIDER/NAME (default: that of SESSION)"},
    {NULL, 0, NULL, NULL},
};

const Command command_fork = {
    .name = "fork",
    .arguments = "SESSION",
    .summary = "forks a session and prints the ID of the fork",
    .details = "The fork begins with the history of SESSION. Nothing is copied, however long\n"
               "it is. Name a message by its ID, or by @head, @head~1 and so on.",
    .options = OPTIONS,
    .examples = {"tine fork plan --slug the-other-way", "tine fork @last --at @head~2"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
