// Connecting: the token, a tined if none runs, and libtine.

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "os/directory.h"
#include "start.h"

static const char IPC[] = "ipc://";

static int read_token(const Cli *cli, char *out)
{
    const char *path = option_text(cli, "token-file");
    if (!path) path = getenv("TINE_TOKEN_FILE");
    if (!path || !*path) return EXIT_OK;
    FILE *file = fopen(path, "re");
    if (!file) {
        return cli_say(EXIT_FAILED, "--token-file: cannot read %s: %s", path, strerror(errno));
    }
    size_t size = fread(out, 1, CLI_TOKEN_BYTES_MAX - 1, file);
    fclose(file);
    while (size > 0 && isspace((unsigned char)out[size - 1]))
        size--;
    out[size] = '\0';
    return EXIT_OK;
}

int connect_open(Cli *cli)
{
    tine_close(cli->tine);
    cli->tine = NULL;
    char token[CLI_TOKEN_BYTES_MAX] = "";
    int code = read_token(cli, token);
    if (code) return code;
    TineOpenOptions options = {.token = token[0] ? token : NULL};
    if (tine_open_with(cli->url, &options, &cli->status, &cli->tine)) {
        return cli_fail(cli, &cli->status);
    }
    return EXIT_OK;
}

// In /tmp anybody could listen where tined would, and be told everything.
static int check_directory(const Cli *cli)
{
    if (!cli->is_in_tmp) return EXIT_OK;
    const char *path = cli->url + strlen(IPC);
    char directory[URL_BYTES_MAX];
    snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (directory_is_exclusive(directory)) return EXIT_OK;
    return cli_say(EXIT_UNAVAILABLE,
                   "%s belongs to others, or others can write to it; say --socket", directory);
}

int cli_connect(Cli *cli, Tine **out_tine)
{
    if (!cli->tine) {
        int code = check_directory(cli);
        if (!code) code = connect_open(cli);
        if (!code && strncmp(cli->url, IPC, strlen(IPC)) == 0) {
            code = start_tined(cli, cli->url + strlen(IPC));
        }
        if (code || !cli->tine) return code ? code : EXIT_UNAVAILABLE;
    }
    *out_tine = cli->tine;
    return EXIT_OK;
}
