// Connecting to tined.

#include "connect.h"

#include "endpoint.h"
#include "start.h"

int cli_connect(Cli *cli, Tine **out_tine)
{
    if (!cli->tine) {
        const char *socket_path = endpoint_socket(cli);
        if (endpoint_is_exposed(cli)) {
            return cli_say(EXIT_UNAVAILABLE,
                           "the directory of %s belongs to another user, or others can write to "
                           "it; use --socket",
                           socket_path);
        }
        int code = endpoint_open(cli);
        if (!code && socket_path) code = start_tined(cli, socket_path);
        if (code || !cli->tine) return code ? code : EXIT_UNAVAILABLE;
    }
    *out_tine = cli->tine;
    return EXIT_OK;
}
