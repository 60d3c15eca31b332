// One run of `tine`: what was asked for, its connection, and how a command ends.
//
// A command reads like this:
//
//     static int run(Cli *cli, int argument_count, char **arguments)
//     {
//         Tine *tine;
//         int code = cli_connect(cli, &tine);
//         if (code) return code;
//
//         SessionName name;
//         code = cli_find_session(cli, arguments[0], &name);
//         if (code) return code;
//
//         GetSessionRequest request = GET_SESSION_REQUEST__INIT;
//         request.session_id = name.id;
//         CLEANUP(message_freep) GetSessionResponse *reply = NULL;
//         if (tine_get_session(tine, &cli->call, &request, &reply)) {
//             return cli_fail(cli, &cli->status);
//         }
//         if (cli->is_json) return cli_print_json(cli, &reply->session->base);
//         …
//         return EXIT_OK;
//     }

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"
#include "command.h"
#include "exit_code.h"
#include "names.h"
#include "text/print.h"
#include "tine.h"
#include "tine_calls.h"

enum { CLI_OPTIONS_MAX = 128, URL_BYTES_MAX = 4096 + 16, ID_BYTES = 27 };

// One option of the command line.
typedef struct GivenOption {
    const Option *option;
    const char *value; // borrowed from argv; NULL for a flag
} GivenOption;

typedef struct Cli {
    const Command *command;
    GivenOption given[CLI_OPTIONS_MAX];
    size_t given_count;

    char url[URL_BYTES_MAX]; // what cli_connect connects to
    bool is_in_tmp;          // the URL is the default socket below /tmp, where others could listen
    bool is_json;            // --json
    bool may_start;          // not --no-start
    bool may_page;
    Printer out;      // standard output
    bool is_terminal; // standard output was a terminal when the run began
    int width;        // columns of the terminal; 80 without one

    Tine *tine; // owned; NULL before cli_connect
    TineStatus status;
    TineCallOptions call; // for the typed calls; its outcome is in `status`
} Cli;

// Functions that report a failure. Each prints one line, "tine: …", on standard error and returns
// the exit code.

int cli_fail(const Cli *cli, const TineStatus *status);
int cli_say(ExitCode code, const char *format, ...) PRINTF_LIKE(2, 3);

// Prints to standard error as print does (text/print.h).
void cli_note(const char *format, ...) PRINTF_LIKE(1, 2);

// Returns EXIT_USAGE. The line also says where to read more.
int cli_usage(const Cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);

ExitCode exit_code_of(int status_code);

// Sends standard output through the pager from here on, if it is a terminal, --json was not given
// and --no-pager neither. Must be called before the first output.
void cli_page(Cli *cli);

// For CLEANUP: frees a message that libtine returned. `pointer` is the address of the variable.
void message_freep(void *pointer);

// Returns the host's time.
int64_t cli_now_ms(void);
