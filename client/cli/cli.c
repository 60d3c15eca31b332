// One run: the options that all commands have, then the command.

#include "cli.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "help.h"
#include "options.h"
#include "os/clock.h"
#include "pager.h"

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MIN = 20,
    WIDTH_MAX = 1000,
    OUTPUT_BUFFER_BYTES = 64 * 1024,
    TIMEOUT_MS = 30 * 1000,
    TIMEOUT_MS_MAX = 3600 * 1000,
};

static int read_globals(Cli *cli);

// Only the character set of the locale is taken over: numbers stay as scripts expect them. Without
// one, text is UTF-8 all the same.
static void set_locale(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) (void)setlocale(LC_CTYPE, "C.UTF-8");
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
    return cli_usage(cli, "there are too many arguments; it takes: %s", command->arguments);
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

// One thread prints, and often very much.
static void set_output(void)
{
    static char buffer[OUTPUT_BUFFER_BYTES];
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    (void)__fsetlocking(stdout, FSETLOCKING_BYCALLER);
    signal(SIGPIPE, SIG_DFL); // `| head` ends us, whatever our parent thinks of the signal
}

int cli_run(int argument_count, char **arguments)
{
    static Cli cli;
    cli.call = (TineCallOptions){.out_status = &cli.status, .timeout_ms = TIMEOUT_MS};
    set_locale();
    set_output();
    int code = run(&cli, argument_count, arguments);
    tine_close(cli.tine);
    // What could not be written is a failure too: a full disk, say.
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_OK) {
        code = cli_say(EXIT_FAILED, "the output could not be written: %m");
    }
    pager_end();
    return code;
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

// What comes first wins: --url, --socket, $TINE_URL, $TINE_SOCKET, where tined listens by itself.
static int read_url(Cli *cli)
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
    return read_url(cli);
}

ExitCode exit_code_of(int status_code)
{
    switch (status_code) {
    case STATUS_OK: return EXIT_OK;
    case STATUS_NOT_FOUND: return EXIT_NOT_FOUND;
    case STATUS_UNAVAILABLE:
    case STATUS_DEADLINE_EXCEEDED: return EXIT_UNAVAILABLE;
    default: return EXIT_FAILED;
    }
}

// Prints one line, "tine: …", behind what went to standard output so far.
static void say_line(const char *format, va_list arguments)
{
    int error = errno; // of %m
    fflush(stdout);
    Printer err = print_to_stderr();
    print(&err, "tine: ");
    errno = error;
    print_list(&err, format, arguments);
    print(&err, "\n");
}

int cli_fail(const Cli *cli, const TineStatus *status)
{
    (void)cli;
    bool is_late = status->code == STATUS_DEADLINE_EXCEEDED;
    (void)cli_say(EXIT_FAILED, is_late ? "%s (--timeout MS waits longer)" : "%s",
                  status->message[0] ? status->message : status->reason);
    return (int)exit_code_of(status->code);
}

int cli_say(ExitCode code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_line(format, arguments);
    va_end(arguments);
    return (int)code;
}

void cli_note(const char *format, ...)
{
    fflush(stdout);
    Printer err = print_to_stderr();
    va_list arguments;
    va_start(arguments, format);
    print_list(&err, format, arguments);
    va_end(arguments);
}

int cli_usage(const Cli *cli, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (size < 0) return cli_say(EXIT_USAGE, "out of memory");
    const char *name = cli->command ? cli->command->name : NULL;
    (void)(name ? cli_say(EXIT_USAGE, "%s: %s (see: tine %s --help)", name, line, name)
                : cli_say(EXIT_USAGE, "%s (see: tine help)", line));
    free(line);
    return EXIT_USAGE;
}

void cli_page(Cli *cli)
{
    if (!cli->may_page) return;
    cli->may_page = false;
    pager_begin();
}

void message_freep(void *pointer)
{
    ProtobufCMessage *message = *(ProtobufCMessage **)pointer;
    if (message) protobuf_c_message_free_unpacked(message, NULL);
}

int64_t cli_now_ms(void)
{
    Clock clock = clock_system();
    return clock_now_ms(&clock);
}
