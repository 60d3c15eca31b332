// tine: the command line of tined. Reads the options that all commands have, then runs the command.

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "endpoint.h"
#include "help.h"
#include "options.h"
#include "pager.h"

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MIN = 20,
    WIDTH_MAX = 1000,
    TIMEOUT_MS = 30 * 1000,
    TIMEOUT_MS_MAX = 3600 * 1000,
};

static void set_locale(void);
static int run(Cli *cli, int argument_count, char **arguments);
static void read_terminal(Cli *cli);
static int read_globals(Cli *cli);
static int check_counts(const Cli *cli, int argument_count);

int main(int argument_count, char **arguments)
{
    static Cli cli;
    cli.call = (TineCallOptions){.out_status = &cli.status, .timeout_ms = TIMEOUT_MS};
    set_locale();
    print_set_buffers();
    signal(SIGPIPE, SIG_DFL); // `| head` ends tine, also if its parent ignores the signal
    int code = run(&cli, argument_count, arguments);
    tine_close(cli.tine);
    // Output that could not be written is a failure, for example on a full disk.
    Printer out = print_to_stdout();
    if (!print_flush(&out) && code == EXIT_OK) {
        code = cli_say(EXIT_FAILED, "the output could not be written: %m");
    }
    pager_end();
    return code;
}

// Takes only the character set from the locale: numbers stay as scripts expect them. Without a
// locale, text is UTF-8.
static void set_locale(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    int count;
    char **rest;
    int code = options_read(cli, argument_count, arguments, &count, &rest);
    if (!code) code = read_globals(cli);
    if (code) return code;
    if (option_is_given(cli, "help")) return help_print(cli, cli->command);
    if (option_is_given(cli, "version") && !cli->command) cli->command = command_find("version");
    if (!cli->command) return help_print(cli, NULL);
    code = check_counts(cli, count);
    return code ? code : cli->command->run(cli, count, rest);
}

static void read_terminal(Cli *cli)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS"), *terminal = getenv("TERM"), *none = getenv("NO_COLOR");
    cli->out = print_to_stdout();
    cli->is_terminal = cli->out.use == PRINT_TERMINAL;
    cli->width = WIDTH_DEFAULT;
    if (cli->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        cli->width = size.ws_col;
    } else if (columns && atoi(columns) > 0) {
        cli->width = atoi(columns);
    }
    if (cli->width < WIDTH_MIN) cli->width = WIDTH_MIN;
    if (cli->width > WIDTH_MAX) cli->width = WIDTH_MAX;
    cli->out.has_colour =
        cli->is_terminal && !(none && *none) && !(terminal && strcmp(terminal, "dumb") == 0);
}

static int read_globals(Cli *cli)
{
    static const char *const WHEN[] = {"auto", "always", "never", NULL};
    int when = 0;
    read_terminal(cli);
    int code = option_choice(cli, "color", WHEN, &when);
    if (!code) code = option_number(cli, "timeout", 1, TIMEOUT_MS_MAX, &cli->call.timeout_ms);
    if (code) return code;
    if (when != 0) cli->out.has_colour = when == 1;
    cli->is_json = option_is_given(cli, "json");
    cli->may_start = !option_is_given(cli, "no-start");
    cli->may_page = cli->is_terminal && !cli->is_json && !option_is_given(cli, "no-pager");
    return endpoint_read(cli);
}

static int check_counts(const Cli *cli, int argument_count)
{
    const Command *command = cli->command;
    if (argument_count < command->argument_count_min) {
        return cli_usage(cli, "it needs: %s", command->arguments);
    }
    if (command->argument_count_max == COMMAND_ANY_COUNT ||
        argument_count <= command->argument_count_max) {
        return EXIT_OK;
    }
    if (!*command->arguments) return cli_usage(cli, "it takes no arguments");
    return cli_usage(cli, "too many arguments; it takes: %s", command->arguments);
}
