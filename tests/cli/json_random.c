// Makes random messages by their descriptors.

#include "json_random.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tine/v1/store.pb-c.h"

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    CHECK(memory != NULL);
    return memory;
}

static char *random_text(Random *random)
{
    static const char *const PIECES[] = {
        "a",    "\"",       "\\",           "\n",
        "\t",   "\x1b[2J",  "\x7f",         "\x01",
        "/",    "\xc2\x9b", "\xe2\x80\xae", "\xf0\x9f\x8c\xb1",
        "1234", "\xc3\xa9", "\xef\xbf\xbf", "\xe2\x81\xa6",
    };
    size_t count = random_below(random, 8);
    char *text = zeroed(count * 4 + 1);
    for (size_t i = 0; i < count; i++) {
        const char *piece = PIECES[random_below(random, sizeof(PIECES) / sizeof(*PIECES))];
        strncat(text, piece, 4);
    }
    return text;
}

static int64_t random_number(Random *random)
{
    switch (random_below(random, 4)) {
    case 0: return 0;
    case 1: return (int64_t)random_below(random, 100);
    case 2: return INT64_MIN;
    default: return (int64_t)random_next(random);
    }
}

static void fill_value(Random *random, const ProtobufCFieldDescriptor *field, void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: *(char **)slot = random_text(random); break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)slot = message_random(random, field->descriptor);
        break;
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData *bytes = slot;
        bytes->len = random_below(random, 8);
        bytes->data = zeroed(bytes->len);
        random_fill(random, bytes->data, bytes->len);
        break;
    }
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *type = field->descriptor;
        bool is_known = random_below(random, 4) > 0;
        *(int *)slot = is_known ? type->values[random_below(random, type->n_values)].value : 12345;
        break;
    }
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)slot = (int)random_below(random, 2); break;
    case PROTOBUF_C_TYPE_UINT32: *(uint32_t *)slot = (uint32_t)random_number(random); break;
    case PROTOBUF_C_TYPE_UINT64: *(uint64_t *)slot = (uint64_t)random_number(random); break;
    case PROTOBUF_C_TYPE_INT64: *(int64_t *)slot = random_number(random); break;
    case PROTOBUF_C_TYPE_INT32: *(int32_t *)slot = (int32_t)random_number(random); break;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: CHECK(false); break; // not used so far
    }
}

static size_t element_bytes(ProtobufCType type)
{
    if (type == PROTOBUF_C_TYPE_BYTES) return sizeof(ProtobufCBinaryData);
    bool is_small = type == PROTOBUF_C_TYPE_ENUM || type == PROTOBUF_C_TYPE_BOOL ||
                    type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_INT32;
    return is_small ? 4 : 8;
}

static void fill_list(Random *random, const ProtobufCFieldDescriptor *field, size_t *count,
                      void **array)
{
    size_t stride = element_bytes(field->type);
    *count = random_below(random, 4);
    if (*count == 0) return;
    *array = zeroed(*count * stride);
    for (size_t i = 0; i < *count; i++) {
        fill_value(random, field, (uint8_t *)*array + i * stride);
    }
}

ProtobufCMessage *message_random(Random *random, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = zeroed(type->sizeof_message);
    protobuf_c_message_init(type, message);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        uint8_t *base = (uint8_t *)message;
        void *slot = base + field->offset, *quantifier = base + field->quantifier_offset;
        if (random_below(random, 3) == 0) continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_list(random, field, quantifier, slot);
        } else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
            fill_value(random, field, slot);
        } else if (*(uint32_t *)quantifier == 0) {
            fill_value(random, field, slot);
            *(uint32_t *)quantifier = field->id;
        }
    }
    return message;
}

static void add_type(const ProtobufCMessageDescriptor *type,
                     const ProtobufCMessageDescriptor **types, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (types[i] == type) return;
    }
    CHECK(*count < MESSAGE_TYPES_MAX);
    types[(*count)++] = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].type != PROTOBUF_C_TYPE_MESSAGE) continue;
        add_type(type->fields[i].descriptor, types, count);
    }
}

size_t message_types(const ProtobufCMessageDescriptor *out_types[MESSAGE_TYPES_MAX])
{
    const ProtobufCServiceDescriptor *service = &tine__v1__store_service__descriptor;
    size_t count = 0;
    for (unsigned i = 0; i < service->n_methods; i++) {
        add_type(service->methods[i].input, out_types, &count);
        add_type(service->methods[i].output, out_types, &count);
    }
    return count;
}
