// tine new: creates a session.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

enum { DIRECTORY_BYTES_MAX = 4096, MODEL_BYTES_MAX = 600 };

typedef struct New {
    NewSession session;
    ModelRef model;
    CreateSessionRequest request;
    SessionName parent;
    MessageName point;
    char model_text[MODEL_BYTES_MAX], directory[DIRECTORY_BYTES_MAX];
} New;

static char *text_or_empty(const Cli *cli, const char *name)
{
    const char *text = option_text(cli, name);
    return (char *)(uintptr_t)(text ? text : "");
}

static int fill_model(const Cli *cli, New *new)
{
    const char *model = option_text(cli, "model");
    if (!model) model = getenv("TINE_MODEL");
    if (!model || !*model) model = "unknown/unknown";
    snprintf(new->model_text, sizeof(new->model_text), "%s", model);
    new->session.model = &new->model;
    return cli_read_model(cli, new->model_text, &new->model);
}

static int fill_parent(Cli *cli, New *new)
{
    const char *parent = option_text(cli, "parent"), *point = option_text(cli, "inherit");
    if (!parent) {
        return point ? cli_usage(cli, "--inherit needs --parent") : EXIT_OK;
    }
    int code = cli_find_session(cli, parent, &new->parent);
    if (code) return code;
    new->session.kind = SESSION_KIND_SUBAGENT;
    new->session.parent_id = new->parent.id;
    if (!point) return EXIT_OK;
    code = cli_find_message(cli, new->parent.id, point, &new->point);
    new->request.fork_point_case = TINE__V1__CREATE_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    new->request.through_message_id = new->point.id;
    return code;
}

static int fill(Cli *cli, New *new)
{
    new->session = (NewSession)NEW_SESSION__INIT;
    new->request = (CreateSessionRequest)CREATE_SESSION_REQUEST__INIT;
    new->request.session = &new->session;
    int code = option_slug_policy(cli, &new->request.slug_policy);
    if (!code) code = fill_model(cli, new);
    if (!code) code = fill_parent(cli, new);
    if (code) return code;
    const char *project = option_text(cli, "project");
    if (!project && !getcwd(new->directory, sizeof(new->directory))) {
        return cli_usage(cli, "there is no current directory; use --project DIR");
    }
    new->session.project_dir = project ? (char *)(uintptr_t)project : new->directory;
    new->session.slug = text_or_empty(cli, "slug");
    new->session.title = text_or_empty(cli, "title");
    new->session.role_name = text_or_empty(cli, "role-name");
    new->session.system_prompt = text_or_empty(cli, "system");
    new->session.metadata_json = text_or_empty(cli, "metadata");
    return EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Tine *tine;
    New new;
    int code = cli_connect(cli, &tine);
    if (!code) code = fill(cli, &new);
    if (code) return code;
    CLEANUP(message_freep) CreateSessionResponse *reply = NULL;
    if (tine_create_session(tine, &cli->call, &new.request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->session->base);
    print(&cli->out, "%s\n", reply->session->id);
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"slug", 's', "SLUG", "name of the session"},
    {"unique", 0, NULL, "fail if another session has this slug"},
    {"suffix", 0, NULL, "if a session has it, add -2, -3, …"},
    {"title", 't', "TEXT", "title of the session"},
    {"project", 'p', "DIR", "project directory (default: the current one)"},
    {"model", 'm', "MODEL", "PROVIDER/NAME (default: $TINE_MODEL, or unknown/unknown)"},
    {"system", 0, "TEXT", "the system prompt"},
    {"role-name", 0, "NAME", "role of the agent: planner, reviewer, …"},
    {"metadata", 0, "JSON", "metadata of your own"},
    {"parent", 0, "SESSION", "create a subagent of this session"},
    {"inherit", 0, "MESSAGE", "… that begins with its history through this message"},
    {NULL, 0, NULL, NULL},
};

const Command command_new = {
    .name = "new",
    .arguments = "",
    .summary = "creates a session and prints its ID",
    .options = OPTIONS,
    .examples = {"tine new --slug plan --model anthropic/claude-sonnet-4",
                 "tine new --parent plan --role-name reviewer --title 'review of the plan'"},
    .run = run,
};
