// Reads one line of an export: finds out which record it is and passes it on.

#include "import.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_message.h"

enum { WORDS_BYTES_MAX = 700 };

typedef struct LineKind {
    const char *name;
    const ProtobufCMessageDescriptor *type;
    int (*take)(Import *import, ProtobufCMessage *record);
} LineKind;

static int take_session(Import *import, ProtobufCMessage *record)
{
    int code = import_session_end(import);
    if (!code) code = import_session(import, (Session *)record);
    if (code) protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static int take_entry(Import *import, ProtobufCMessage *record)
{
    int code = import_entry(import, (Message *)record);
    protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static int take_original(Import *import, ProtobufCMessage *record)
{
    int code = import_original(import, (const Original *)record);
    protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static int take_memory(Import *import, ProtobufCMessage *record)
{
    int code = import_memory(import, (const Memory *)record);
    protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static int take_todos(Import *import, ProtobufCMessage *record)
{
    int code = import_todos(import, (const Todos *)record);
    protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static int take_call(Import *import, ProtobufCMessage *record)
{
    int code = import_call(import, (const CallRecord *)record);
    protobuf_c_message_free_unpacked(record, NULL);
    return code;
}

static const LineKind KINDS[] = {
    {"session", &tine__v1__session__descriptor, take_session},
    {"call", &tine__v1__call__descriptor, take_call},
    {"entry", &tine__v1__message__descriptor, take_entry},
    {"original", &tine__v1__original__descriptor, take_original},
    {"memory", &tine__v1__memory__descriptor, take_memory},
    {"todos", &tine__v1__todos__descriptor, take_todos},
};

int import_fail(const Import *import, const char *format, ...)
{
    char words[WORDS_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    return cli_say(EXIT_FAILED, "line %zu: %s", import->line, words);
}

int import_fail_call(const Import *import)
{
    int code = import_fail(import, "%s", import->cli->status.message);
    return exit_code_of(import->cli->status.code) == EXIT_UNAVAILABLE ? EXIT_UNAVAILABLE : code;
}

const char *import_mapped(const Import *import, const char *id, char out[ID_BYTES])
{
    if (!id_map_get(&import->ids, id, out)) out[0] = '\0';
    return out;
}

External *import_external(External *own, External *made, char *id)
{
    static char source[] = "tine";
    if (own) return own;
    tine__v1__external__init(made);
    made->source = source;
    made->id = id;
    return made;
}

// {"tine_export": 1}
static Error read_header(JsonReader *reader, Import *import)
{
    Slice number;
    size_t at = reader->scan.at;
    Error error = json_reader_number(reader, &number);
    if (error) return error;
    if (number.size != 1 || *number.bytes != '0' + EXPORT_FORMAT) {
        return json_reader_fail(
            reader, at,
            "this is an export of format %.*s, and this tine reads format %d; use "
            "the tine that wrote it, or a newer one",
            (int)number.size, (const char *)number.bytes, EXPORT_FORMAT);
    }
    import->has_header = true;
    return ERROR_NONE;
}

static Error read_record(JsonReader *reader, const Import *import, const char *name, size_t at,
                         const LineKind **out_kind, ProtobufCMessage **out_record)
{
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
        if (strcmp(KINDS[i].name, name) != 0) continue;
        if (!import->has_header) {
            return json_reader_fail(reader, at, "the first line must be {\"tine_export\":%d}",
                                    EXPORT_FORMAT);
        }
        *out_kind = &KINDS[i];
        (void)json_reader_enter(reader, name);
        return json_message_read_from(reader, KINDS[i].type, out_record);
    }
    return json_reader_fail(reader, at, "an export has no line that begins with \"%.60s\"", name);
}

static Error read_line(JsonReader *reader, Import *import, const LineKind **out_kind,
                       ProtobufCMessage **out_record)
{
    if (!json_scan_take(&reader->scan, '{')) return json_reader_fail_expected(reader, "an object");
    (void)json_scan_peek(&reader->scan);
    char *name = NULL;
    size_t at = reader->scan.at, size;
    Error error = json_reader_string(reader, &name, &size);
    if (error) return error;
    if (!json_scan_take(&reader->scan, ':')) {
        error = json_reader_fail_expected(reader, "':'");
    } else if (strcmp(name, "tine_export") == 0) {
        error = read_header(reader, import);
    } else {
        error = read_record(reader, import, name, at, out_kind, out_record);
    }
    free(name);
    if (error) return error;
    json_reader_leave(reader, 0);
    if (!json_scan_take(&reader->scan, '}')) return json_reader_fail_expected(reader, "'}'");
    if (json_scan_peek(&reader->scan), reader->scan.at < reader->scan.text.size) {
        return json_reader_fail(reader, reader->scan.at,
                                "there is more text after the object's end");
    }
    return ERROR_NONE;
}

int import_line(Import *import, Slice line)
{
    JsonReader reader;
    ErrorDetail detail = {{0}};
    const LineKind *kind = NULL;
    ProtobufCMessage *record = NULL;
    Error error = json_reader_begin(&reader, line, &detail);
    reader.lines_before = import->line - 1;
    if (error) return import_fail(import, "%s", detail.text);
    if (json_scan_peek(&reader.scan) == '\0' && reader.scan.at == line.size) {
        return EXIT_OK;
    } // an empty line
    error = read_line(&reader, import, &kind, &record);
    if (error) {
        if (record) protobuf_c_message_free_unpacked(record, NULL);
        return cli_say(EXIT_FAILED, "%s", detail.text[0] ? detail.text : error_text(error));
    }
    if (!kind) return EXIT_OK;
    if (kind->take != take_session && !import->session) {
        protobuf_c_message_free_unpacked(record, NULL);
        return import_fail(import, "this %s comes before any session", kind->name);
    }
    return kind->take(import, record);
}

int import_end(Import *import)
{
    int code = import_session_end(import);
    if (code) return code;
    if (import->has_header) return EXIT_OK;
    return cli_say(EXIT_FAILED, "this is not an export of tine: it is empty");
}

void import_free(Import *import)
{
    if (import->session) protobuf_c_message_free_unpacked(&import->session->base, NULL);
    import->session = NULL;
    id_map_free(&import->ids);
}
