// tine describe: shows the calls, messages and enums of the contract, from the descriptor set of
// this program or of the running server.

#include <string.h>
#include <strings.h>

#include "cli.h"
#include "connect.h"
#include "descriptor_set.h"
#include "google/protobuf/descriptor.pb-c.h"
#include "nearest.h"
#include "options.h"
#include "text/json_write.h"

typedef Google__Protobuf__FileDescriptorSet Files;
typedef Google__Protobuf__FileDescriptorProto ProtoFile;
typedef Google__Protobuf__DescriptorProto MessageType;
typedef Google__Protobuf__FieldDescriptorProto FieldType;
typedef Google__Protobuf__EnumDescriptorProto EnumType;
typedef Google__Protobuf__MethodDescriptorProto MethodType;

static int describe(const Cli *cli, const Files *files, const char *name);
static int print_limits(Cli *cli, const DescribeResponse *server);

static int read_files(Slice bytes, Files **out)
{
    *out = google__protobuf__file_descriptor_set__unpack(NULL, bytes.size, bytes.bytes);
    return *out ? EXIT_OK : cli_say(EXIT_FAILED, "the descriptor set cannot be read");
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    CLEANUP(message_freep) DescribeResponse *server = NULL;
    CLEANUP(message_freep) Files *files = NULL;
    Slice bytes = slice(DESCRIPTOR_SET, DESCRIPTOR_SET_BYTES);
    if (option_is_given(cli, "server") || option_is_given(cli, "limits")) {
        Tine *tine;
        int code = cli_connect(cli, &tine);
        if (code) return code;
        DescribeRequest request = DESCRIBE_REQUEST__INIT;
        if (tine_describe(tine, &cli->call, &request, &server)) return cli_fail(cli, &cli->status);
        if (option_is_given(cli, "limits")) return print_limits(cli, server);
        bytes = slice(server->descriptor_set.data, server->descriptor_set.len);
    }
    int code = read_files(bytes, &files);
    if (code) return code;
    cli_page(cli);
    return describe(cli, files, argument_count > 0 ? arguments[0] : NULL);
}

static int print_limits(Cli *cli, const DescribeResponse *server)
{
    if (cli->is_json) print(&cli->out, "{");
    for (size_t i = 0; i < server->n_limits; i++) {
        const Limit *limit = server->limits[i];
        if (cli->is_json) {
            print(&cli->out, i ? ",\n " : "\n ");
            print_json_text(&cli->out, slice_of(limit->name));
            print(&cli->out, ": %llu", (unsigned long long)limit->value);
        } else {
            print(&cli->out, "%-48s %llu\n", limit->name, (unsigned long long)limit->value);
        }
    }
    if (cli->is_json) print(&cli->out, "\n}\n");
    return EXIT_OK;
}

// Returns "Part" for ".tine.v1.Part" and for "Part".
static const char *short_name(const char *name)
{
    const char *last = strrchr(name, '.');
    return last ? last + 1 : name;
}

static const char *package_of(const ProtoFile *file)
{
    return file->package ? file->package : "";
}

static const char *field_type_name(const FieldType *field)
{
    static const char *const NAMES[] = {
        "",        "double",   "float",    "int64",  "uint64",  "int32", "fixed64",
        "fixed32", "bool",     "string",   "group",  "message", "bytes", "uint32",
        "enum",    "sfixed32", "sfixed64", "sint32", "sint64",
    };
    if (field->type_name && *field->type_name) return short_name(field->type_name);
    size_t type = (size_t)field->type;
    return type < sizeof(NAMES) / sizeof(*NAMES) ? NAMES[type] : "unknown";
}

static bool is_repeated(const FieldType *field)
{
    return field->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED;
}

static void print_field(const Printer *out, const FieldType *field, const char *indent)
{
    print(out, "%s%s%s %s = %d;\n", indent, is_repeated(field) ? "repeated " : "",
          field_type_name(field), field->name, field->number);
}

static void print_message(const Printer *out, const MessageType *message)
{
    print(out, "message %s {\n", message->name);
    int32_t group = -1;
    for (size_t i = 0; i < message->n_field; i++) {
        const FieldType *field = message->field[i];
        int32_t of = field->has_oneof_index ? field->oneof_index : -1;
        if (of != group && group >= 0) print(out, "  }\n");
        if (of != group && of >= 0 && (size_t)of < message->n_oneof_decl) {
            print(out, "  oneof %s {\n", message->oneof_decl[of]->name);
        }
        group = of;
        print_field(out, field, of >= 0 ? "    " : "  ");
    }
    if (group >= 0) print(out, "  }\n");
    print(out, "}\n");
}

static void print_enum(const Printer *out, const EnumType *type)
{
    print(out, "enum %s {\n", type->name);
    for (size_t i = 0; i < type->n_value; i++) {
        print(out, "  %s = %d;\n", type->value[i]->name, type->value[i]->number);
    }
    print(out, "}\n");
}

static bool only_reads(const MethodType *method)
{
    return method->options &&
           method->options->idempotency_level ==
               GOOGLE__PROTOBUF__METHOD_OPTIONS__IDEMPOTENCY_LEVEL__NO_SIDE_EFFECTS;
}

static void print_method(const Printer *out, const MethodType *method)
{
    print(out, "rpc %s(%s) returns (%s%s);%s\n", method->name, short_name(method->input_type),
          method->server_streaming ? "stream " : "", short_name(method->output_type),
          only_reads(method) ? "" : " // writes");
}

static void json_member(const Printer *out, const char *name, const char *value, const char *after)
{
    print(out, "\"%s\": ", name);
    print_json_text(out, slice_of(value));
    print(out, "%s", after);
}

static void json_message(const Printer *out, const MessageType *message)
{
    print(out, "{");
    json_member(out, "message", message->name, ", \"fields\": [");
    for (size_t i = 0; i < message->n_field; i++) {
        const FieldType *field = message->field[i];
        print(out, i ? ",\n  {" : "\n  {");
        json_member(out, "name", field->name, ", ");
        json_member(out, "type", field_type_name(field), ", ");
        if (field->has_oneof_index && (size_t)field->oneof_index < message->n_oneof_decl) {
            json_member(out, "oneof", message->oneof_decl[field->oneof_index]->name, ", ");
        }
        print(out, "\"number\": %d, \"repeated\": %s}", field->number,
              is_repeated(field) ? "true" : "false");
    }
    print(out, "\n]}\n");
}

static void json_enum(const Printer *out, const EnumType *type)
{
    print(out, "{");
    json_member(out, "enum", type->name, ", \"values\": [");
    for (size_t i = 0; i < type->n_value; i++) {
        print(out, i ? ",\n  {" : "\n  {");
        json_member(out, "name", type->value[i]->name, ", ");
        print(out, "\"number\": %d}", type->value[i]->number);
    }
    print(out, "\n]}\n");
}

static void json_method(const Printer *out, const ProtoFile *file, const char *service,
                        const MethodType *method)
{
    print(out, "{");
    json_member(out, "call", method->name, ", ");
    print(out, "\"path\": \"/%s.%s/%s\", ", package_of(file), service, method->name);
    json_member(out, "request", short_name(method->input_type), ", ");
    json_member(out, "response", short_name(method->output_type), ", ");
    print(out, "\"stream\": %s, \"writes\": %s}", method->server_streaming ? "true" : "false",
          only_reads(method) ? "false" : "true");
}

static void print_services(const Cli *cli, const Files *files)
{
    const Printer *out = &cli->out;
    size_t count = 0;
    if (cli->is_json) print(out, "{\"calls\": [");
    for (size_t i = 0; i < files->n_file; i++) {
        const ProtoFile *file = files->file[i];
        for (size_t j = 0; j < file->n_service; j++) {
            const Google__Protobuf__ServiceDescriptorProto *service = file->service[j];
            if (!cli->is_json) print(out, "service %s.%s\n", package_of(file), service->name);
            for (size_t k = 0; k < service->n_method; k++, count++) {
                print(out, cli->is_json ? (count ? ",\n  " : "\n  ") : "  ");
                if (cli->is_json) {
                    json_method(out, file, service->name, service->method[k]);
                } else {
                    print_method(out, service->method[k]);
                }
            }
        }
    }
    if (cli->is_json) print(out, "\n]}\n");
}

static const MessageType *find_message(const Files *files, const char *name, Nearest *nearest)
{
    for (size_t i = 0; i < files->n_file; i++) {
        for (size_t j = 0; j < files->file[i]->n_message_type; j++) {
            const MessageType *message = files->file[i]->message_type[j];
            if (strcasecmp(message->name, name) == 0) return message;
            nearest_consider(nearest, message->name);
        }
    }
    return NULL;
}

static const EnumType *find_enum(const Files *files, const char *name, Nearest *nearest)
{
    for (size_t i = 0; i < files->n_file; i++) {
        for (size_t j = 0; j < files->file[i]->n_enum_type; j++) {
            const EnumType *type = files->file[i]->enum_type[j];
            if (strcasecmp(type->name, name) == 0) return type;
            nearest_consider(nearest, type->name);
        }
    }
    return NULL;
}

static void describe_method(const Cli *cli, const Files *files, const ProtoFile *file,
                            const char *service, const MethodType *method)
{
    const Printer *out = &cli->out;
    if (cli->is_json) {
        json_method(out, file, service, method);
        print(out, "\n");
        return;
    }
    Nearest nearest = nearest_begin("");
    const MessageType *request = find_message(files, short_name(method->input_type), &nearest);
    const MessageType *response = find_message(files, short_name(method->output_type), &nearest);
    print_method(out, method);
    print(out, "\n");
    if (request) print_message(out, request);
    print(out, "\n");
    if (response) print_message(out, response);
}

// Returns whether there is a call of this name.
static bool describe_if_method(const Cli *cli, const Files *files, const char *name,
                               Nearest *nearest)
{
    for (size_t i = 0; i < files->n_file; i++) {
        const ProtoFile *file = files->file[i];
        for (size_t j = 0; j < file->n_service; j++) {
            for (size_t k = 0; k < file->service[j]->n_method; k++) {
                const MethodType *method = file->service[j]->method[k];
                nearest_consider(nearest, method->name);
                if (strcasecmp(method->name, name) != 0) continue;
                describe_method(cli, files, file, file->service[j]->name, method);
                return true;
            }
        }
    }
    return false;
}

static int describe(const Cli *cli, const Files *files, const char *name)
{
    if (!name) {
        print_services(cli, files);
        return EXIT_OK;
    }
    const char *slash = strrchr(name, '/');
    const char *wanted = short_name(slash ? slash + 1 : name);
    Nearest nearest = nearest_begin(wanted);
    if (describe_if_method(cli, files, wanted, &nearest)) return EXIT_OK;
    const MessageType *message = find_message(files, wanted, &nearest);
    const EnumType *type = message ? NULL : find_enum(files, wanted, &nearest);
    if (message && cli->is_json) {
        json_message(&cli->out, message);
    } else if (message) {
        print_message(&cli->out, message);
    } else if (type && cli->is_json) {
        json_enum(&cli->out, type);
    } else if (type) {
        print_enum(&cli->out, type);
    } else if (nearest.name) {
        return cli_say(EXIT_NOT_FOUND, "there is no call, message or enum '%s'; did you mean %s?",
                       name, nearest.name);
    } else {
        return cli_say(EXIT_NOT_FOUND, "there is no call, message or enum '%s'", name);
    }
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"server", 's', NULL, "ask the running tined instead of this program"},
    {"limits", 'l', NULL, "show the limits of the running tined"},
    {NULL, 0, NULL, NULL},
};

const Command command_describe = {
    .name = "describe",
    .arguments = "[NAME]",
    .summary = "lists the calls, or shows a call, message or enum",
    .options = OPTIONS,
    .examples = {"tine describe", "tine describe AppendMessage", "tine describe Part --server",
                 "tine describe --limits"},
    .argument_count_max = 1,
    .run = run,
};
