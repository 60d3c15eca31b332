// tine append: appends a message to a session.

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_message.h"
#include "json_print.h"
#include "message_print.h"
#include "options.h"

enum { MODEL_BYTES_MAX = 600, NANO_DIGITS = 9, COST_DIGITS_MAX = 9 };

// The message to append, and the memory that it uses.
typedef struct Append {
    NewMessage *message; // owned: read from JSON, or `plain` below
    NewMessage plain;
    Text text;
    Part part, *parts[1];
    Usage usage;
    ModelRef model;
    char model_text[MODEL_BYTES_MAX];
    char *content; // owned
    SessionName session;
    MessageName parent;
    AppendMessageRequest request;
} Append;

static int read_message(Cli *cli, const char *json, bool is_parts, Append *append)
{
    CLEANUP(text_freep) char *text = NULL;
    int code = input_read_json(cli, json, &text);
    if (code) return code;
    // An array of parts stands for a message with only these parts.
    const char *first = text + strspn(text, " \t\r\n");
    if (is_parts && *first == '[') {
        char *whole;
        if (asprintf(&whole, "{\"parts\":%s}", text) < 0) {
            return cli_say(EXIT_FAILED, "out of memory");
        }
        free(text);
        text = whole;
    }
    ErrorDetail detail = {""};
    ProtobufCMessage *message = NULL;
    Error error = json_message_read(slice_of(text), &new_message__descriptor, &detail, &message);
    if (error) {
        return cli_say(EXIT_USAGE, "append: --%s: %s", is_parts ? "parts" : "message",
                       detail.text[0] ? detail.text : error_text(error));
    }
    append->message = (NewMessage *)message;
    return EXIT_OK;
}

static int fill_text(Cli *cli, const char *text, Append *append)
{
    int code = input_read(cli, text, &append->content);
    if (code) return code;
    append->text = (Text)TEXT__INIT;
    append->text.text = append->content;
    append->part = (Part)PART__INIT;
    append->part.kind_case = TINE__V1__PART__KIND_TEXT;
    append->part.text = &append->text;
    append->parts[0] = &append->part;
    append->plain = (NewMessage)NEW_MESSAGE__INIT;
    append->plain.parts = append->parts;
    append->plain.n_parts = 1;
    append->message = &append->plain;
    return EXIT_OK;
}

// The role is taken from the option, else from the message; otherwise it is user.
static int fill_role(const Cli *cli, NewMessage *message)
{
    int role = -1, kind = -1;
    int code = option_choice(cli, "role", ROLE_NAMES, &role);
    if (!code) code = option_choice(cli, "kind", MESSAGE_KIND_NAMES, &kind);
    if (code) return code;
    if (role >= 0) message->role = (Role)(role + 1);
    if (kind >= 0) message->kind = (MessageKind)(kind + 1);
    if (message->role == ROLE_UNSPECIFIED) message->role = ROLE_USER;
    return EXIT_OK;
}

// Reads an amount in USD digit by digit, so that nothing is lost to rounding.
static int read_cost(const Cli *cli, int64_t *out_nano_usd)
{
    const char *text = option_text(cli, "cost");
    if (!text) return EXIT_OK;
    size_t whole = strspn(text, "0123456789");
    const char *rest = text + whole + (text[whole] == '.');
    size_t decimals = strspn(rest, "0123456789");
    if (whole > COST_DIGITS_MAX || decimals > NANO_DIGITS || rest[decimals] ||
        whole + decimals == 0) {
        return cli_usage(cli, "--cost: '%s' is not an amount in USD like 0.0123", text);
    }
    int64_t nano_usd = 0;
    for (size_t i = 0; i < whole; i++)
        nano_usd = nano_usd * 10 + (text[i] - '0');
    for (size_t i = 0; i < NANO_DIGITS; i++) {
        nano_usd = nano_usd * 10 + (i < decimals ? rest[i] - '0' : 0);
    }
    *out_nano_usd = nano_usd;
    return EXIT_OK;
}

static int fill_usage(const Cli *cli, Append *append)
{
    Usage *usage = &append->usage;
    *usage = (Usage)USAGE__INIT;
    int code = option_number(cli, "input-tokens", 0, INT64_MAX, &usage->input_tokens);
    if (!code) {
        code = option_number(cli, "output-tokens", 0, INT64_MAX, &usage->output_tokens);
    }
    if (!code) code = read_cost(cli, &usage->cost_nano_usd);
    if (code) return code;
    bool is_said = option_text(cli, "input-tokens") || option_text(cli, "output-tokens") ||
                   option_text(cli, "cost");
    if (is_said && append->message != &append->plain) {
        return cli_usage(cli, "with --message or --parts, give the usage in the JSON");
    }
    if (is_said) append->message->usage = usage;
    append->request.propagate_usage = option_is_given(cli, "propagate");
    return EXIT_OK;
}

static int fill_model(const Cli *cli, Append *append)
{
    const char *model = option_text(cli, "model");
    if (!model) return EXIT_OK;
    if (append->message != &append->plain) {
        return cli_usage(cli, "with --message or --parts, give the model in the JSON");
    }
    snprintf(append->model_text, sizeof(append->model_text), "%s", model);
    append->message->model = &append->model;
    return cli_read_model(cli, append->model_text, &append->model);
}

static int fill_place(Cli *cli, Append *append)
{
    AppendMessageRequest *request = &append->request;
    const char *parent = option_text(cli, "parent"), *head = option_text(cli, "expect-head");
    request->session_id = append->session.id;
    request->message = append->message;
    if (head) {
        request->expected_head_case =
            TINE__V1__APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
        request->expected_head_id = (char *)(uintptr_t)head;
    }
    cli->call.operation_id = option_text(cli, "operation-id");
    if (!parent) return EXIT_OK;
    request->parent_case = TINE__V1__APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
    request->parent_id = append->parent.id;
    return *parent ? cli_find_message(cli, append->session.id, parent, &append->parent) : EXIT_OK;
}

static int append_message(Cli *cli, Append *append, const char *text)
{
    const char *parts = option_text(cli, "parts"), *whole = option_text(cli, "message");
    if ((parts != NULL) + (whole != NULL) + (text != NULL) > 1) {
        return cli_usage(cli, "give only one of TEXT, --parts and --message");
    }
    int code = parts   ? read_message(cli, parts, /* is_parts= */ true, append)
               : whole ? read_message(cli, whole, /* is_parts= */ false, append)
                       : fill_text(cli, text, append);
    append->request = (AppendMessageRequest)APPEND_MESSAGE_REQUEST__INIT;
    if (!code) code = fill_role(cli, append->message);
    if (!code) code = fill_usage(cli, append);
    if (!code) code = fill_model(cli, append);
    if (!code) code = fill_place(cli, append);
    if (code) return code;
    CLEANUP(message_freep) AppendMessageResponse *reply = NULL;
    if (tine_append_message(cli->tine, &cli->call, &append->request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->receipt->base);
    print(&cli->out, "%s\n", reply->receipt->id);
    return EXIT_OK;
}

static void append_free(Append *append)
{
    if (append->message && append->message != &append->plain) {
        protobuf_c_message_free_unpacked(&append->message->base, NULL);
    }
    free(append->content);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    const char *session = option_text(cli, "session");
    Tine *tine;
    CLEANUP(append_free) Append append = {0};
    if (!session && argument_count == 0) return cli_usage(cli, "it needs a session");
    if (session && argument_count > 1) {
        return cli_usage(cli, "with --session, the only argument is the text");
    }
    if (!session) session = *arguments++;
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, session, &append.session);
    return code ? code : append_message(cli, &append, arguments[0]);
}

static const Option OPTIONS[] = {
    {"role", 'r', "ROLE", "user, assistant, tool, system or other (default: user)"},
    {"session", 's', "SESSION", "the session, instead of the first argument"},
    {"parts", 0, "JSON", "array of parts; @FILE reads a file, - standard input"},
    {"message", 0, "JSON", "whole message, see `tine describe NewMessage`; also @FILE, -"},
    {"kind", 'k', "KIND", "conversation, injected, label, … (default: conversation)"},
    {"model", 'm', "MODEL", "PROVIDER/NAME of the model that wrote it"},
    {"input-tokens", 0, "N", "input tokens used"},
    {"output-tokens", 0, "N", "output tokens used"},
    {"cost", 0, "USD", "cost in USD: 0.0123"},
    {"propagate", 0, NULL, "add the usage to the totals of the session and its ancestors"},
    {"parent", 0, "MESSAGE", "append after this message (default: the head); '' at the beginning"},
    {"expect-head", 0, "ID", "fail if the head is another one"},
    {"operation-id", 0, "ID", "with the same ID again, the message is appended only once"},
    {NULL, 0, NULL, NULL},
};

const Command command_append = {
    .name = "append",
    .arguments = "SESSION [TEXT]",
    .summary = "appends a message to a session and prints its ID",
    .details = "Without TEXT, the text is read from standard input.",
    .options = OPTIONS,
    .examples = {"tine append plan 'Where do we begin?'",
                 "make 2>&1 | tine append @last --role tool",
                 "tine append plan --role assistant --parts '[{\"text\":{\"text\":\"Here.\"}}]'"},
    .argument_count_max = 2,
    .run = run,
};
