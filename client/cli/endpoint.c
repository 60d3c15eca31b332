// The URL and the token of tined.

#include "endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "os/directory.h"

enum { TOKEN_BYTES_MAX = 512 };

static const char IPC[] = "ipc://";

int endpoint_read(Cli *cli)
{
    const char *url = option_text(cli, "url"), *socket = NULL, *runtime = getenv("XDG_RUNTIME_DIR");
    if (!url) socket = option_text(cli, "socket");
    if (!url && !socket) url = getenv("TINE_URL");
    if (!(url && *url) && !socket) socket = getenv("TINE_SOCKET");
    if (socket && *socket && (strstr(socket, "://") || strncmp(socket, "embedded:", 9) == 0)) {
        url = socket;
    }
    int size;
    if (url && *url) {
        size = snprintf(cli->url, sizeof(cli->url), "%s", url);
    } else if (socket && *socket) {
        size = snprintf(cli->url, sizeof(cli->url), "ipc://%s", socket);
    } else if (runtime && runtime[0] == '/') {
        size = snprintf(cli->url, sizeof(cli->url), "ipc://%s/tine/tine.sock", runtime);
    } else {
        size = snprintf(cli->url, sizeof(cli->url), "ipc:///tmp/tine-%lu/tine.sock",
                        (unsigned long)geteuid());
        cli->is_in_tmp = true;
    }
    if (size < 0 || (size_t)size >= sizeof(cli->url)) return cli_usage(cli, "the URL is too long");
    return EXIT_OK;
}

static int read_token(const Cli *cli, char *out)
{
    const char *path = option_text(cli, "token-file");
    if (!path) path = getenv("TINE_TOKEN_FILE");
    if (!path || !*path) return EXIT_OK;
    FILE *file = fopen(path, "re");
    if (!file) {
        return cli_say(EXIT_FAILED, "--token-file: cannot read %s: %s", path, strerror(errno));
    }
    size_t size = fread(out, 1, TOKEN_BYTES_MAX - 1, file);
    fclose(file);
    while (size > 0 && isspace((unsigned char)out[size - 1]))
        size--;
    out[size] = '\0';
    return EXIT_OK;
}

int endpoint_open(Cli *cli)
{
    tine_close(cli->tine);
    cli->tine = NULL;
    char token[TOKEN_BYTES_MAX] = "";
    int code = read_token(cli, token);
    if (code) return code;
    TineOpenOptions options = {.token = token[0] ? token : NULL};
    if (tine_open_with(cli->url, &options, &cli->status, &cli->tine)) {
        return cli_fail(cli, &cli->status);
    }
    return EXIT_OK;
}

const char *endpoint_socket(const Cli *cli)
{
    return strncmp(cli->url, IPC, strlen(IPC)) == 0 ? cli->url + strlen(IPC) : NULL;
}

bool endpoint_is_exposed(const Cli *cli)
{
    if (!cli->is_in_tmp) return false;
    const char *path = endpoint_socket(cli);
    char directory[URL_BYTES_MAX];
    snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
    return !directory_is_exclusive(directory);
}
