// What all commands share: messages about failures, the pager, the time.

#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "os/clock.h"
#include "pager.h"

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

// Prints one line, "tine: …", on standard error.
static void say_line(const char *format, va_list arguments)
{
    int error = errno; // of %m
    Printer out = print_to_stdout(), err = print_to_stderr();
    print_flush(&out);
    print(&err, "tine: ");
    errno = error;
    print_list(&err, format, arguments);
    print(&err, "\n");
}

int cli_fail(const Cli *cli, const TineStatus *status)
{
    (void)cli;
    bool is_late = status->code == STATUS_DEADLINE_EXCEEDED;
    (void)cli_say(EXIT_FAILED, is_late ? "%s (wait longer: --timeout MS)" : "%s",
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
    Printer out = print_to_stdout(), err = print_to_stderr();
    print_flush(&out);
    va_list arguments;
    va_start(arguments, format);
    print_list(&err, format, arguments);
    va_end(arguments);
    print_flush(&err);
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
