// One run of `tine`: what was asked for, the client, and how a command ends.
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
#include "names.h"
#include "text/print.h"
#include "tine.h"
#include "tine_calls.h"

// What `tine` ends with. Documented in `tine help`.
typedef enum ExitCode {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_UNAVAILABLE = 4,
} ExitCode;

enum { CLI_OPTIONS_MAX = 128, URL_BYTES_MAX = 4096 + 16, ID_BYTES = 27, CLI_TOKEN_BYTES_MAX = 512 };

// An option that was given.
typedef struct GivenOption {
    const Option *option;
    const char *value; // borrowed from argv; NULL: a flag
} GivenOption;

typedef struct Cli {
    const Command *command;
    GivenOption given[CLI_OPTIONS_MAX];
    size_t given_count;

    char url[URL_BYTES_MAX]; // what cli_connect connects to
    bool is_in_tmp;          // the URL is a socket where others can put one too
    bool is_json;            // --json
    bool may_start;          // a tined may be started
    bool may_page;
    Printer out;      // standard output
    bool is_terminal; // standard output was a terminal when the run began
    int width;        // columns of the terminal; 80 if it is none

    Tine *tine; // owned; NULL: not connected
    TineStatus status;
    TineCallOptions call; // for the typed calls: leaves `status` above
} Cli;

// Options.

// The value of the last option of this name; NULL if it was not given. The name must be one of the
// command's or a global one.
const char *option_text(const Cli *cli, const char *name);
bool option_is_given(const Cli *cli, const char *name);

// One option, given more than once: `index` counts from 0, NULL ends it.
const char *option_text_at(const Cli *cli, const char *name, size_t index);

// A whole number from `min` to `max`; left as it is if the option was not given. EXIT_USAGE, said.
MUST_USE int option_number(const Cli *cli, const char *name, int64_t min, int64_t max,
                           int64_t *in_out);

// One of `names` (NULL-terminated): its index. Left as it is if not given. EXIT_USAGE, said.
MUST_USE int option_choice(const Cli *cli, const char *name, const char *const *names, int *in_out);

// Failing. Each prints one line, "tine: …", on standard error and returns the exit code.

int cli_fail(const Cli *cli, const TineStatus *status);
int cli_say(ExitCode code, const char *format, ...) PRINTF_LIKE(2, 3);

// Prints to standard error as print does (text/print.h).
void cli_note(const char *format, ...) PRINTF_LIKE(1, 2);

// EXIT_USAGE, with where to read more.
int cli_usage(const Cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);

ExitCode exit_code_of(int status_code);

// The client. Starts a tined if none listens on the socket (start.h), unless --no-start. The client
// is the Cli's, closed by it.
MUST_USE int cli_connect(Cli *cli, Tine **out_tine);

// Finds a session by what people call it: its ID, a prefix of it of 4 characters or more, its slug,
// `@last` or `@last~2`, or the ID that it has at the agent it was imported from. EXIT_NOT_FOUND;
// EXIT_FAILED with the candidates when several fit.
typedef struct SessionName {
    char id[ID_BYTES];
} SessionName;

MUST_USE int cli_find_session(Cli *cli, const char *text, SessionName *out);

// Output.

// One message as JSON on standard output: a document of its own, on one line when a command prints
// a stream of them. Returns EXIT_OK, or EXIT_FAILED when there is no memory.
int cli_print_json(Cli *cli, const ProtobufCMessage *message);
int cli_print_json_line(Cli *cli, const ProtobufCMessage *message);

// The same as a part of a document that the caller prints, without a line feed.
void cli_print_json_piece(Cli *cli, const ProtobufCMessage *message);

// A message as a UIMessage, on one line (ui_message.h).
void cli_print_ui(Cli *cli, const Message *message);

// From here on standard output goes through the pager, if it is a terminal, pages are wanted and
// --json is not. Call it before the first output.
void cli_page(Cli *cli);

// For CLEANUP: frees a message that libtine returned. `pointer` is the address of the variable.
void message_freep(void *pointer);

// The host's time.
int64_t cli_now_ms(void);

// The run itself.
int cli_run(int argument_count, char **arguments);
