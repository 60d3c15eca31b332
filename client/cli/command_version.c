// tine version: prints the versions of this program and of the running tined.

#include "cli.h"
#include "connect.h"
#include "options.h"

// The version of the server is shown if one runs. None is started for it.
static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    if (!option_is_given(cli, "server")) {
        if (cli->is_json) {
            print(&cli->out, "{\"version\":\"" TINE_VERSION "\"}\n");
        } else {
            print(&cli->out, "tine " TINE_VERSION "\n");
        }
        return EXIT_OK;
    }
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    DescribeRequest request = DESCRIBE_REQUEST__INIT;
    CLEANUP(message_freep) DescribeResponse *reply = NULL;
    if (tine_describe(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
    if (cli->is_json) {
        print(&cli->out,
              "{\"version\":\"%s\",\"server_version\":\"%s\",\"api_version\":\"%s\","
              "\"format_version\":%u,\"instance_id\":\"%s\"}\n",
              TINE_VERSION, reply->server_version, reply->api_version, reply->format_version,
              reply->instance_id);
        return EXIT_OK;
    }
    print(&cli->out, "tine %s\ntined %s\napi %s\nformat %u\nstore %s\n", TINE_VERSION,
          reply->server_version, reply->api_version, reply->format_version, reply->instance_id);
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"server", 's', NULL, "also of the running tined and the format of its store"},
    {NULL, 0, NULL, NULL},
};

const Command command_version = {
    .name = "version",
    .arguments = "",
    .summary = "prints the version",
    .options = OPTIONS,
    .examples = {"tine version", "tine version --server"},
    .run = run,
};
