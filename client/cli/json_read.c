// Reading JSON into messages. The recursion is bounded by the contract, whose messages do not
// contain themselves: what no field expects is an error before it is read. All memory is malloc's,
// so that protobuf-c frees the message as it frees one from the wire, a half-read one too.

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "json.h"
#include "json_scan.h"
#include "json_value.h"
#include "nearest.h"

enum { NAME_BYTES_MAX = 128, NUMBER_BYTES_MAX = 64 };

static Error read_members(JsonScan *scan, ProtobufCMessage *message, uint8_t *is_given);
static Error read_name(JsonScan *scan, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor **out_field);
static Error read_member(JsonScan *scan, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field);
static Error read_list(JsonScan *scan, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field);
static Error read_value(JsonScan *scan, const ProtobufCFieldDescriptor *field, void *slot);

Error json_read(Slice text, const ProtobufCMessageDescriptor *type, ErrorDetail *detail,
                ProtobufCMessage **out_message)
{
    JsonScan scan;
    Error error = scan_begin(&scan, text, detail);
    if (error) return error;
    ProtobufCMessage *message = NULL;
    error = scan_message(&scan, type, &message);
    if (error) return error;
    if (scan_peek(&scan), scan.at < text.size) {
        protobuf_c_message_free_unpacked(message, NULL);
        return scan_fail(&scan, scan.at, "there is more text after the object's end");
    }
    *out_message = message;
    return ERROR_NONE;
}

static void *field_slot(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->offset;
}

static void *field_quantifier(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->quantifier_offset;
}

Error scan_message(JsonScan *scan, const ProtobufCMessageDescriptor *type,
                   ProtobufCMessage **out_message)
{
    if (scan_peek(scan) != '{') return scan_fail_expected(scan, "an object");
    scan->at++;
    Error error;
    ProtobufCMessage *message = scan_alloc(scan, type->sizeof_message, &error);
    if (!message) return error;
    protobuf_c_message_init(type, message);
    uint8_t *is_given = scan_alloc(scan, type->n_fields, &error);
    if (is_given) error = read_members(scan, message, is_given);
    free(is_given);
    if (error) {
        protobuf_c_message_free_unpacked(message, NULL);
        return error;
    }
    *out_message = message;
    return ERROR_NONE;
}

static Error read_members(JsonScan *scan, ProtobufCMessage *message, uint8_t *is_given)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    bool is_end = scan_take(scan, '}');
    while (!is_end) {
        const ProtobufCFieldDescriptor *field = NULL;
        (void)scan_peek(scan);
        size_t name_at = scan->at;
        Error error = read_name(scan, type, &field);
        if (error) return error;
        size_t outside = scan_enter(scan, field->name);
        uint8_t *is_field_given = &is_given[field - type->fields];
        if (*is_field_given) return scan_fail(scan, name_at, "this field is given twice");
        *is_field_given = 1;
        error = read_member(scan, message, field);
        if (error) return error;
        scan_leave(scan, outside);
        error = scan_next(scan, '}', &is_end);
        if (error) return error;
    }
    return ERROR_NONE;
}

// "projectDir" as "project_dir": proto3's JSON has both names.
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

static Error fail_unknown(JsonScan *scan, size_t at, const ProtobufCMessageDescriptor *type,
                          const char *name)
{
    Nearest nearest = nearest_begin(name);
    for (unsigned i = 0; i < type->n_fields; i++)
        nearest_consider(&nearest, type->fields[i].name);
    if (nearest.name) {
        return scan_fail(scan, at, "%s has no field \"%.60s\"; did you mean \"%s\"?",
                         type->short_name, name, nearest.name);
    }
    return scan_fail(scan, at, "%s has no field \"%.60s\"; `tine describe %s` lists its fields",
                     type->short_name, name, type->short_name);
}

static Error read_name(JsonScan *scan, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor **out_field)
{
    if (scan_peek(scan) != '"') return scan_fail_expected(scan, "a field's name in quotes");
    size_t at = scan->at, size = 0;
    char *name = NULL;
    Error error = scan_string(scan, &name, &size);
    if (error) return error;
    *out_field = protobuf_c_message_descriptor_get_field_by_name(type, name);
    if (!*out_field) *out_field = find_camel(type, name);
    if (!*out_field) error = fail_unknown(scan, at, type, name);
    free(name);
    if (error) return error;
    return scan_take(scan, ':') ? ERROR_NONE : scan_fail_expected(scan, "':'");
}

static const char *name_of_case(const ProtobufCMessageDescriptor *type, uint32_t number)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, number);
    return field ? field->name : "another";
}

static Error read_member(JsonScan *scan, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field)
{
    if (scan_take_word(scan, "null")) return ERROR_NONE; // as if it were left out
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return read_list(scan, message, field);
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
        return read_value(scan, field, field_slot(message, field));
    }
    uint32_t *set_case = field_quantifier(message, field);
    if (*set_case) {
        return scan_fail(scan, scan->at, "only one of its group can be set, and %s is already",
                         name_of_case(message->descriptor, *set_case));
    }
    Error error = read_value(scan, field, field_slot(message, field));
    if (!error) *set_case = field->id;
    return error;
}

// Makes room for one more element: the array's capacity is the next power of two of its count, and
// so need not be kept anywhere.
static Error grow_list(JsonScan *scan, void **array, size_t count, size_t stride)
{
    if ((count & (count - 1)) != 0) return ERROR_NONE;
    Error error;
    size_t capacity = count > 0 ? 2 * count : 1;
    void *grown = scan_alloc(scan, capacity * stride, &error);
    if (!grown) return error;
    if (count > 0) memcpy(grown, *array, count * stride);
    free(*array);
    *array = grown;
    return ERROR_NONE;
}

static Error read_list(JsonScan *scan, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    if (!scan_take(scan, '[')) return scan_fail_expected(scan, "a list");
    void **array = field_slot(message, field);
    size_t *count = field_quantifier(message, field), stride = json_value_bytes(field->type);
    bool is_end = scan_take(scan, ']');
    while (!is_end) {
        size_t outside = scan_enter_index(scan, *count);
        Error error = grow_list(scan, array, *count, stride);
        if (!error) error = read_value(scan, field, (uint8_t *)*array + *count * stride);
        if (error) return error;
        ++*count;
        scan_leave(scan, outside);
        error = scan_next(scan, ']', &is_end);
        if (error) return error;
    }
    return ERROR_NONE;
}

// A number, or a string that holds one, as text with a NUL behind.
static Error read_number_text(JsonScan *scan, char out[NUMBER_BYTES_MAX], size_t *out_at)
{
    bool is_quoted = scan_peek(scan) == '"';
    *out_at = scan->at;
    if (is_quoted) scan->at++;
    Slice digits = {NULL, 0};
    Error error = scan_number(scan, &digits);
    if (error) return error;
    if (is_quoted && !scan_take(scan, '"')) {
        return scan_fail(scan, *out_at, "expected a number, not this string");
    }
    if (digits.size >= NUMBER_BYTES_MAX) return scan_fail(scan, *out_at, "this number is too long");
    memcpy(out, digits.bytes, digits.size);
    out[digits.size] = '\0';
    return ERROR_NONE;
}

// JSON's whole numbers have no plus and no leading zeros.
static bool is_whole_number(const char *text)
{
    if (*text == '-') text++;
    if (*text == '0' && text[1]) return false;
    return *text && strspn(text, "0123456789") == strlen(text);
}

static Error read_signed(JsonScan *scan, int64_t min, int64_t max, int64_t *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(scan, text, &at);
    if (error) return error;
    if (!is_whole_number(text)) return scan_fail(scan, at, "expected a whole number, not %s", text);
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno || number < min || number > max) {
        return scan_fail(scan, at, "%s is not between %lld and %lld", text, (long long)min,
                         (long long)max);
    }
    *out = number;
    return ERROR_NONE;
}

static Error read_unsigned(JsonScan *scan, uint64_t max, uint64_t *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(scan, text, &at);
    if (error) return error;
    if (!is_whole_number(text)) return scan_fail(scan, at, "expected a whole number, not %s", text);
    errno = 0;
    unsigned long long number = strtoull(text, NULL, 10);
    if (errno || *text == '-' || number > max) {
        return scan_fail(scan, at, "%s is not between 0 and %llu", text, (unsigned long long)max);
    }
    *out = number;
    return ERROR_NONE;
}

static Error read_double(JsonScan *scan, double *out)
{
    char text[NUMBER_BYTES_MAX];
    size_t at;
    Error error = read_number_text(scan, text, &at);
    if (error) return error;
    char *end;
    *out = strtod(text, &end);
    return *end ? scan_fail(scan, at, "%s is no number", text) : ERROR_NONE;
}

static Error read_bool(JsonScan *scan, protobuf_c_boolean *out)
{
    *out = scan_take_word(scan, "true");
    if (*out || scan_take_word(scan, "false")) return ERROR_NONE;
    return scan_fail_expected(scan, "true or false");
}

// "ROLE_USER" for "user": the prefix of the zero, "ROLE_UNSPECIFIED", is that of all.
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

static Error find_enum(JsonScan *scan, const ProtobufCEnumDescriptor *type, size_t at,
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
    return scan_fail(scan, at, "%s has no value \"%.60s\"%s%s%s", type->short_name, name,
                     nearest.name ? "; did you mean \"" : "", nearest.name ? nearest.name : "",
                     nearest.name ? "\"?" : "");
}

static Error read_enum(JsonScan *scan, const ProtobufCEnumDescriptor *type, int *out)
{
    char byte = scan_peek(scan);
    if (byte == '-' || (byte >= '0' && byte <= '9')) {
        int64_t number = 0;
        Error error = read_signed(scan, INT32_MIN, INT32_MAX, &number);
        if (!error) *out = (int)number;
        return error;
    }
    if (byte != '"') return scan_fail_expected(scan, "the name of a value in quotes");
    size_t at = scan->at, size = 0;
    char *name = NULL;
    Error error = scan_string(scan, &name, &size);
    if (error) return error;
    error = find_enum(scan, type, at, name, out);
    free(name);
    return error;
}

static int base64_digit(char letter)
{
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    if (letter == '+' || letter == '-') return 62;
    return letter == '/' || letter == '_' ? 63 : -1;
}

// Decodes in place: the bytes are never more than the digits. SIZE_MAX: no base64.
static size_t base64_decode(char *text, size_t size)
{
    size_t padding = 0, count = 0;
    while (padding < 2 && size > 0 && text[size - 1] == '=') {
        size--;
        padding++;
    }
    if (size % 4 == 1 || (padding > 0 && (size + padding) % 4 != 0)) return SIZE_MAX;
    uint32_t group = 0;
    for (size_t i = 0; i < size; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) return SIZE_MAX;
        group = group << 6 | (uint32_t)digit;
        if (i % 4 > 0) text[count++] = (char)(uint8_t)(group >> (6 - 2 * (i % 4)));
    }
    return count;
}

static Error read_bytes(JsonScan *scan, ProtobufCBinaryData *out)
{
    if (scan_peek(scan) != '"') return scan_fail_expected(scan, "bytes as base64 in quotes");
    size_t at = scan->at, size = 0;
    char *text = NULL;
    Error error = scan_string(scan, &text, &size);
    if (error) return error;
    size = base64_decode(text, size);
    if (size == SIZE_MAX) {
        free(text);
        return scan_fail(scan, at, "this is not base64");
    }
    out->data = (uint8_t *)text;
    out->len = size;
    return ERROR_NONE;
}

static Error read_value_signed(JsonScan *scan, const ProtobufCFieldDescriptor *field, void *slot)
{
    int64_t number = 0;
    bool is_wide = json_value_bytes(field->type) == 8;
    Error error = is_wide ? read_signed(scan, INT64_MIN, INT64_MAX, &number)
                          : read_signed(scan, INT32_MIN, INT32_MAX, &number);
    if (error) return error;
    if (is_wide) {
        *(int64_t *)slot = number;
    } else {
        *(int32_t *)slot = (int32_t)number;
    }
    return ERROR_NONE;
}

static Error read_value_unsigned(JsonScan *scan, const ProtobufCFieldDescriptor *field, void *slot)
{
    uint64_t number = 0;
    bool is_wide = json_value_bytes(field->type) == 8;
    Error error = read_unsigned(scan, is_wide ? UINT64_MAX : UINT32_MAX, &number);
    if (error) return error;
    if (is_wide) {
        *(uint64_t *)slot = number;
    } else {
        *(uint32_t *)slot = (uint32_t)number;
    }
    return ERROR_NONE;
}

static Error read_value_real(JsonScan *scan, const ProtobufCFieldDescriptor *field, void *slot)
{
    double number = 0;
    Error error = read_double(scan, &number);
    if (error) return error;
    if (field->type == PROTOBUF_C_TYPE_DOUBLE) {
        *(double *)slot = number;
    } else {
        *(float *)slot = (float)number;
    }
    return ERROR_NONE;
}

static Error read_value(JsonScan *scan, const ProtobufCFieldDescriptor *field, void *slot)
{
    size_t size;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: return read_value_signed(scan, field, slot);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return read_value_unsigned(scan, field, slot);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: return read_value_real(scan, field, slot);
    case PROTOBUF_C_TYPE_BOOL: return read_bool(scan, slot);
    case PROTOBUF_C_TYPE_ENUM: return read_enum(scan, field->descriptor, slot);
    case PROTOBUF_C_TYPE_STRING: return scan_string(scan, slot, &size);
    case PROTOBUF_C_TYPE_BYTES: return read_bytes(scan, slot);
    case PROTOBUF_C_TYPE_MESSAGE: return scan_message(scan, field->descriptor, slot);
    }
    assert(false); // protobuf-c has no other type
    return ERROR_INVALID_ARGUMENT;
}
