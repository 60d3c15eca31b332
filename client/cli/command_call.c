// tine call: makes any call, JSON in and JSON out.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "file_read.h"
#include "json_message.h"
#include "json_print.h"
#include "method.h"
#include "options.h"
#include "tine_calls.h"

static int read_request(const char *argument, const ProtobufCMethodDescriptor *method,
                        ProtobufCMessage **out);
static const void *field_named(const ProtobufCMessage *message, const char *name);
static int watch(Cli *cli, Tine *tine, const ProtobufCMessage *request);

static int run(Cli *cli, int argument_count, char **arguments)
{
    const ProtobufCMethodDescriptor *method = method_find_or_say(arguments[0]);
    if (!method) return EXIT_USAGE;
    CLEANUP(message_freep) ProtobufCMessage *request = NULL, *reply = NULL;
    const char *json = argument_count > 1 ? arguments[1] : "{}";
    int code = read_request(json, method, &request);
    if (code) return code;
    cli->call.operation_id = option_text(cli, "operation-id");
    cli->call.traceparent = option_text(cli, "traceparent");
    Tine *tine;
    code = cli_connect(cli, &tine);
    if (code) return code;
    // A call that waits for news as long as the request says has that much more time.
    const uint32_t *wait_ms = field_named(request, "wait_ms");
    if (wait_ms && !option_text(cli, "timeout")) cli->call.timeout_ms += *wait_ms;
    char path[METHOD_PATH_BYTES_MAX];
    method_path(method, path);
    if (tine_method_is_stream(path)) return watch(cli, tine, request);
    if (tine_call(tine, &cli->call, path, request, method->output, &reply)) {
        return cli_say(exit_code_of(cli->status.code), "%s: %s", cli->status.reason,
                       cli->status.message);
    }
    return cli_print_json(cli, reply);
}

static int read_request(const char *argument, const ProtobufCMethodDescriptor *method,
                        ProtobufCMessage **out)
{
    CLEANUP(buffer_free) Buffer file = {0};
    Slice text = slice_of(argument);
    const char *source = "the request";
    if (*argument == '@' || strcmp(argument, "-") == 0) {
        source = *argument == '@' ? argument + 1 : "standard input";
        int code = file_read(*argument == '@' ? argument + 1 : "-", JSON_TEXT_BYTES_MAX, &file);
        if (code) return code;
        text = buffer_slice(&file);
    }
    ErrorDetail detail = {{0}};
    Error error = json_message_read(text, method->input, &detail, out);
    if (!error) return EXIT_OK;
    return cli_say(EXIT_USAGE, "%s: %s", source, detail.text[0] ? detail.text : error_text(error));
}

// Returns a field of the request by its name, because this file is also built for a contract
// without WatchEvents.
static const void *field_named(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    return field ? (const uint8_t *)message + field->offset : NULL;
}

static const char *text_named(const ProtobufCMessage *message, const char *name)
{
    const char *const *text = field_named(message, name);
    return text ? *text : "";
}

// Watches events. The loop ends with the connection or with Ctrl-C.
static int watch(Cli *cli, Tine *tine, const ProtobufCMessage *request)
{
    const uint64_t *after = field_named(request, "after_sequence");
    const int *start = field_named(request, "start");
    TineWatchOptions options = {
        .session_id = text_named(request, "session_id"),
        .type_prefix = text_named(request, "type_prefix"),
        .instance_id = text_named(request, "instance_id"),
        .after_sequence = after ? *after : 0,
        // libtine counts the starts from 0, the contract from 1.
        .start = start && *start > 0 ? (TineWatchStart)(*start - 1) : TINE_WATCH_NEW,
    };
    TineWatch *watching;
    int status = tine_watch(tine, &options, &cli->status, &watching);
    if (status) return cli_fail(cli, &cli->status);
    bool is_written = true;
    while (is_written) {
        CLEANUP(message_freep) Event *event = NULL;
        status = tine_watch_next(watching, -1, &cli->status, &event);
        if (status) break;
        if (!event) continue;
        print(&cli->out, "{\"event\":");
        cli_print_json_piece(cli, &event->base);
        print(&cli->out, "}\n");
        is_written = print_flush(&cli->out);
    }
    tine_watch_close(watching);
    return status ? cli_fail(cli, &cli->status) : EXIT_FAILED;
}

static const Option OPTIONS[] = {
    {"operation-id", 0, "ID",
     "of a write; with the same ID again it runs only once (default: random)"},
    {"traceparent", 0, "TEXT", "W3C trace context, for the log of the server"},
    {NULL, 0, NULL, NULL},
};

const Command command_call = {
    .name = "call",
    .arguments = "CALL [JSON|@FILE|-]",
    .summary = "makes any call, with JSON as request and response",
    .details = "`tine describe` lists the calls, `tine describe CALL` shows request and\n"
               "response. The request is a JSON object: an argument, a file, or standard input\n"
               "(-); without one it is empty. Errors in it are reported with line and column.\n"
               "WatchEvents prints one event a line until it is interrupted.",
    .options = OPTIONS,
    .examples = {"tine call ListSessions '{\"limit\": 2}'",
                 "echo '{\"session_id\": \"01K…\"}' | tine call GetSession -",
                 "tine call AppendMessage @request.json"},
    .argument_count_min = 1,
    .argument_count_max = 2,
    .run = run,
};
