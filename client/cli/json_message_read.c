// Reads JSON into messages. The recursion is bounded, because no message of the contract contains
// itself and a value that no field expects is refused before it is read. All memory comes from
// malloc, so protobuf-c can free the message, also one that was read in part.

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "json_message.h"
#include "json_value.h"
#include "nearest.h"
#include "text/base64.h"

enum { NAME_BYTES_MAX = 128, NUMBER_BYTES_MAX = 64 };

static Error read_members(JsonReader *reader, ProtobufCMessage *message, uint8_t *is_given);
static Error read_name(JsonReader *reader, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor **out_field);
static Error read_member(JsonReader *reader, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field);
static Error read_list(JsonReader *reader, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field);
static Error read_value(JsonReader *reader, const ProtobufCFieldDescriptor *field, void *value);

Error json_message_read(Slice text, const ProtobufCMessageDescriptor *type, ErrorDetail *detail,
                        ProtobufCMessage **out_message)
{
    JsonReader reader;
    Error error = json_reader_begin(&reader, text, detail);
    if (error) return error;
    ProtobufCMessage *message = NULL;
    error = json_message_read_from(&reader, type, &message);
    if (error) return error;
    if (json_scan_peek(&reader.scan), reader.scan.at < text.size) {
        protobuf_c_message_free_unpacked(message, NULL);
        return json_reader_fail(&reader, reader.scan.at,
                                "there is more text after the object's end");
    }
    *out_message = message;
    return ERROR_NONE;
}

static void *field_value(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->offset;
}

static void *field_quantifier(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->quantifier_offset;
}

Error json_message_read_from(JsonReader *reader, const ProtobufCMessageDescriptor *type,
                             ProtobufCMessage **out_message)
{
    if (json_scan_peek(&reader->scan) != '{') return json_reader_fail_expected(reader, "an object");
    reader->scan.at++;
    Error error;
    ProtobufCMessage *message = json_reader_alloc(reader, type->sizeof_message, &error);
    if (!message) return error;
    protobuf_c_message_init(type, message);
    uint8_t *is_given = json_reader_alloc(reader, type->n_fields, &error);
    if (is_given) error = read_members(reader, message, is_given);
    free(is_given);
    if (error) {
        protobuf_c_message_free_unpacked(message, NULL);
        return error;
    }
    *out_message = message;
    return ERROR_NONE;
}

static Error read_members(JsonReader *reader, ProtobufCMessage *message, uint8_t *is_given)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    bool is_end = json_scan_take(&reader->scan, '}');
    while (!is_end) {
        const ProtobufCFieldDescriptor *field = NULL;
        (void)json_scan_peek(&reader->scan);
        size_t name_at = reader->scan.at;
        Error error = read_name(reader, type, &field);
        if (error) return error;
        size_t outside = json_reader_enter(reader, field->name);
        uint8_t *is_field_given = &is_given[field - type->fields];
        if (*is_field_given) return json_reader_fail(reader, name_at, "this field is given twice");
        *is_field_given = 1;
        error = read_member(reader, message, field);
        if (error) return error;
        json_reader_leave(reader, outside);
        error = json_reader_next(reader, '}', &is_end);
        if (error) return error;
    }
    return ERROR_NONE;
}

// Finds "project_dir" for "projectDir": the JSON of proto3 has both names.
static const ProtobufCFieldDescriptor *find_camel(const ProtobufCMessageDescriptor *type,
                                                  const char *name)
{
    char snake[NAME_BYTES_MAX];
    size_t size = 0;
    for (; *name && size + 2 < sizeof(snake); name++) {
        bool is_upper = *name >= 'A' && *name <= 'Z';
        if (is_upper) snake[size++] = '_';
        snake[size++] = is_upper ? (char)(*name - 'A' + 'a') : *name;
    }
    snake[size] = '\0';
    return *name ? NULL : protobuf_c_message_descriptor_get_field_by_name(type, snake);
}

static Error fail_unknown(JsonReader *reader, size_t at, const ProtobufCMessageDescriptor *type,
                          const char *name)
{
    Nearest nearest = nearest_begin(name);
    for (unsigned i = 0; i < type->n_fields; i++)
        nearest_consider(&nearest, type->fields[i].name);
    if (nearest.name) {
        return json_reader_fail(reader, at, "%s has no field \"%.60s\"; did you mean \"%s\"?",
                                type->short_name, name, nearest.name);
    }
    return json_reader_fail(reader, at,
                            "%s has no field \"%.60s\"; `tine describe %s` lists its fields",
                            type->short_name, name, type->short_name);
}

static Error read_name(JsonReader *reader, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor **out_field)
{
    if (json_scan_peek(&reader->scan) != '"') {
        return json_reader_fail_expected(reader, "a field's name in quotes");
    }
    size_t at = reader->scan.at, size = 0;
    char *name = NULL;
    Error error = json_reader_string(reader, &name, &size);
    if (error) return error;
    *out_field = protobuf_c_message_descriptor_get_field_by_name(type, name);
    if (!*out_field) *out_field = find_camel(type, name);
    if (!*out_field) error = fail_unknown(reader, at, type, name);
    free(name);
    if (error) return error;
    return json_scan_take(&reader->scan, ':') ? ERROR_NONE
                                              : json_reader_fail_expected(reader, "':'");
}

static const char *name_of_case(const ProtobufCMessageDescriptor *type, uint32_t number)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);
    return field ? field->name : "another";
}

static Error read_member(JsonReader *reader, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field)
{
    if (json_scan_take_word(&reader->scan, "null")) return ERROR_NONE; // the field is not set
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return read_list(reader, message, field);
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
        return read_value(reader, field, field_value(message, field));
    }
    uint32_t *set_case = field_quantifier(message, field);
    if (*set_case) {
        return json_reader_fail(reader, reader->scan.at,
                                "only one of its group can be set, and %s is already",
                                name_of_case(message->descriptor, *set_case));
    }
    Error error = read_value(reader, field, field_value(message, field));
    if (!error) *set_case = field->id;
    return error;
}

// Makes room for one more element. The capacity is the next power of two of the count, so it is not
// stored.
static Error grow_list(JsonReader *reader, void **array, size_t count, size_t stride)
{
    if ((count & (count - 1)) != 0) return ERROR_NONE;
    Error error;
    size_t capacity = count > 0 ? 2 * count : 1;
    void *grown = json_reader_alloc(reader, capacity * stride, &error);
    if (!grown) return error;
    if (count > 0) memcpy(grown, *array, count * stride);
    free(*array);
    *array = grown;
    return ERROR_NONE;
}

static Error read_list(JsonReader *reader, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    if (!json_scan_take(&reader->scan, '[')) return json_reader_fail_expected(reader, "a list");
    void **array = field_value(message, field);
    size_t *count = field_quantifier(message, field), stride = json_value_bytes(field->type);
    bool is_end = json_scan_take(&reader->scan, ']');
    while (!is_end) {
        size_t outside = json_reader_enter_index(reader, *count);
        Error error = grow_list(reader, array, *count, stride);
        if (!error) error = read_value(reader, field, (uint8_t *)*array + *count * stride);
        if (error) return error;
        ++*count;
        json_reader_leave(reader, outside);
        error = json_reader_next(reader, ']', &is_end);
        if (error) return error;
    }
    return ERROR_NONE;
}

// Reads a number, or a string that holds one, as NUL-terminated text.
static Error read_number_text(JsonReader *reader, char out[NUMBER_BYTES_MAX], size_t *out_at)
{
    bool is_quoted = json_scan_peek(&reader->scan) == '"';
    *out_at = reader->scan.at;
    if (is_quoted) reader->scan.at++;
    Slice digits = {NULL, 0};
    Error error = json_reader_number(reader, &digits);
    if (error) return error;
    if (is_quoted && !json_scan_take(&reader->scan, '"')) {
        return json_reader_fail(reader, *out_at, "expected a number, not this string");
    }
    if (digits.size >= NUMBER_BYTES_MAX) {
        return json_reader_fail(reader, *out_at, "this number is too long");
    }
    memcpy(out, digits.bytes, digits.size);
    out[digits.size] = '\0';
    return ERROR_NONE;
}

// Integers in JSON have no plus sign and no leading zeros.
static bool is_whole_number(const char *text)
{
    if (*text == '-') text++;
    if (*text == '0' && text[1]) return false;
    return *text && strspn(text, "0123456789") == strlen(text);
}

static Error read_signed(JsonReader *reader, int64_t min, int64_t max, int64_t *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(reader, text, &at);
    if (error) return error;
    if (!is_whole_number(text)) {
        return json_reader_fail(reader, at, "expected a whole number, not %s", text);
    }
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno || number < min || number > max) {
        return json_reader_fail(reader, at, "%s is not between %lld and %lld", text, (long long)min,
                                (long long)max);
    }
    *out = number;
    return ERROR_NONE;
}

static Error read_unsigned(JsonReader *reader, uint64_t max, uint64_t *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(reader, text, &at);
    if (error) return error;
    if (!is_whole_number(text)) {
        return json_reader_fail(reader, at, "expected a whole number, not %s", text);
    }
    errno = 0;
    unsigned long long number = strtoull(text, NULL, 10);
    if (errno || *text == '-' || number > max) {
        return json_reader_fail(reader, at, "%s is not between 0 and %llu", text,
                                (unsigned long long)max);
    }
    *out = number;
    return ERROR_NONE;
}

static Error read_double(JsonReader *reader, double *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(reader, text, &at);
    if (error) return error;
    char *end;
    *out = strtod(text, &end);
    return *end ? json_reader_fail(reader, at, "%s is not a number", text) : ERROR_NONE;
}

static Error read_bool(JsonReader *reader, protobuf_c_boolean *out)
{
    *out = json_scan_take_word(&reader->scan, "true");
    if (*out || json_scan_take_word(&reader->scan, "false")) return ERROR_NONE;
    return json_reader_fail_expected(reader, "true or false");
}

// Finds "ROLE_USER" for "user". All values have the prefix of the zero value, "ROLE_UNSPECIFIED".
static const ProtobufCEnumValue *find_short_name(const ProtobufCEnumDescriptor *type,
                                                 const char *name)
{
    static const char ZERO[] = "UNSPECIFIED";
    const ProtobufCEnumValue *zero = protobuf_c_enum_descriptor_get_value(type, 0);
    size_t size = zero ? strlen(zero->name) : 0;
    if (size < strlen(ZERO)) return NULL;
    size -= strlen(ZERO);
    for (unsigned i = 0; i < type->n_values; i++) {
        const char *full = type->values[i].name;
        if (strlen(full) > size && strcasecmp(full + size, name) == 0) return &type->values[i];
    }
    return NULL;
}

static Error find_enum(JsonReader *reader, const ProtobufCEnumDescriptor *type, size_t at,
                       const char *name, int *out)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (!value) value = find_short_name(type, name);
    if (value) {
        *out = value->value;
        return ERROR_NONE;
    }
    Nearest nearest = nearest_begin(name);
    for (unsigned i = 0; i < type->n_values; i++)
        nearest_consider(&nearest, type->values[i].name);
    return json_reader_fail(reader, at, "%s has no value \"%.60s\"%s%s%s", type->short_name, name,
                            nearest.name ? "; did you mean \"" : "",
                            nearest.name ? nearest.name : "", nearest.name ? "\"?" : "");
}

static Error read_enum(JsonReader *reader, const ProtobufCEnumDescriptor *type, int *out)
{
    char byte = json_scan_peek(&reader->scan);
    if (byte == '-' || (byte >= '0' && byte <= '9')) {
        int64_t number = 0;
        Error error = read_signed(reader, INT32_MIN, INT32_MAX, &number);
        if (!error) *out = (int)number;
        return error;
    }
    if (byte != '"') return json_reader_fail_expected(reader, "the name of a value in quotes");
    size_t at = reader->scan.at, size = 0;
    char *name = NULL;
    Error error = json_reader_string(reader, &name, &size);
    if (error) return error;
    error = find_enum(reader, type, at, name, out);
    free(name);
    return error;
}

static Error read_bytes(JsonReader *reader, ProtobufCBinaryData *out)
{
    if (json_scan_peek(&reader->scan) != '"') {
        return json_reader_fail_expected(reader, "bytes as base64 in quotes");
    }
    size_t at = reader->scan.at, size = 0;
    char *text = NULL;
    Error error = json_reader_string(reader, &text, &size);
    if (error) return error;
    size = base64_decode(slice(text, size), BASE64_LENIENT, text);
    if (size == SIZE_MAX) {
        free(text);
        return json_reader_fail(reader, at, "this is not base64");
    }
    out->data = (uint8_t *)text;
    out->len = size;
    return ERROR_NONE;
}

static Error read_value_signed(JsonReader *reader, const ProtobufCFieldDescriptor *field,
                               void *value)
{
    int64_t number = 0;
    bool is_wide = json_value_bytes(field->type) == 8;
    Error error = is_wide ? read_signed(reader, INT64_MIN, INT64_MAX, &number)
                          : read_signed(reader, INT32_MIN, INT32_MAX, &number);
    if (error) return error;
    if (is_wide) {
        *(int64_t *)value = number;
    } else {
        *(int32_t *)value = (int32_t)number;
    }
    return ERROR_NONE;
}

static Error read_value_unsigned(JsonReader *reader, const ProtobufCFieldDescriptor *field,
                                 void *value)
{
    uint64_t number = 0;
    bool is_wide = json_value_bytes(field->type) == 8;
    Error error = read_unsigned(reader, is_wide ? UINT64_MAX : UINT32_MAX, &number);
    if (error) return error;
    if (is_wide) {
        *(uint64_t *)value = number;
    } else {
        *(uint32_t *)value = (uint32_t)number;
    }
    return ERROR_NONE;
}

static Error read_value_real(JsonReader *reader, const ProtobufCFieldDescriptor *field, void *value)
{
    double number = 0;
    Error error = read_double(reader, &number);
    if (error) return error;
    if (field->type == PROTOBUF_C_TYPE_DOUBLE) {
        *(double *)value = number;
    } else {
        *(float *)value = (float)number;
    }
    return ERROR_NONE;
}

static Error read_value(JsonReader *reader, const ProtobufCFieldDescriptor *field, void *value)
{
    size_t size;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: return read_value_signed(reader, field, value);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return read_value_unsigned(reader, field, value);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: return read_value_real(reader, field, value);
    case PROTOBUF_C_TYPE_BOOL: return read_bool(reader, value);
    case PROTOBUF_C_TYPE_ENUM: return read_enum(reader, field->descriptor, value);
    case PROTOBUF_C_TYPE_STRING: return json_reader_string(reader, value, &size);
    case PROTOBUF_C_TYPE_BYTES: return read_bytes(reader, value);
    case PROTOBUF_C_TYPE_MESSAGE: return json_message_read_from(reader, field->descriptor, value);
    }
    assert(false); // protobuf-c has no other type
    return ERROR_INVALID_ARGUMENT;
}
