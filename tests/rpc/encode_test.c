// Encoding: the bytes are protobuf-c's, for every message of the contract.

#include <stdlib.h>

#include "base/arena.h"
#include "dispatch_table.h"
#include "harness.h"
#include "os/random.h"
#include "wire/encode.h"

enum { ROUNDS = 30, ELEMENTS_MAX = 4, TEXT_BYTES_MAX = 300 };

static void *member_at(ProtobufCMessage *message, unsigned offset)
{
    return (uint8_t *)message + offset;
}

static char *make_text(Arena *arena, Random *random)
{
    size_t size = random_below(random, 3) == 0 ? random_below(random, TEXT_BYTES_MAX) : 3;
    if (random_below(random, 4) == 0) size = 0;
    char *text = arena_alloc(arena, size + 1);
    CHECK(text);
    memset(text, 't', size);
    text[size] = '\0';
    return random_below(random, 8) == 0 ? NULL : text;
}

// Near the borders of what a byte of a varint holds, on both sides of zero.
static uint64_t make_number(Random *random)
{
    uint64_t number = (UINT64_C(1) << random_below(random, 64)) - random_below(random, 2);
    return random_below(random, 4) == 0 ? 0 : random_below(random, 2) ? number : 0 - number;
}

static ProtobufCMessage *make_message(Arena *arena, Random *random,
                                      const ProtobufCMessageDescriptor *descriptor);

static void set_value(Arena *arena, Random *random, const ProtobufCFieldDescriptor *field,
                      void *value)
{
    uint64_t number = make_number(random);
    ProtobufCBinaryData bytes = {0};
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)value = number & 1; break;
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32: *(uint32_t *)value = (uint32_t)number; break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: *(uint64_t *)value = number; break;
    case PROTOBUF_C_TYPE_STRING: *(char **)value = make_text(arena, random); break;
    case PROTOBUF_C_TYPE_BYTES:
        bytes.data = (uint8_t *)make_text(arena, random);
        if (bytes.data) bytes.len = strlen((char *)bytes.data);
        *(ProtobufCBinaryData *)value = bytes;
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)value = make_message(arena, random, field->descriptor);
        break;
    default: CHECK(false); // the contract has a type that encode.c does not know
    }
}

static size_t element_bytes(const ProtobufCFieldDescriptor *field)
{
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return 8;
    default: return 4;
    }
}

static void set_field(Arena *arena, Random *random, const ProtobufCFieldDescriptor *field,
                      ProtobufCMessage *message)
{
    void *member = member_at(message, field->offset);
    void *quantifier = member_at(message, field->quantifier_offset);
    static char empty[] = "";
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = random_below(random, ELEMENTS_MAX + 1), size = element_bytes(field);
        uint8_t *elements = arena_zalloc(arena, size * (count + 1));
        CHECK(elements);
        for (size_t i = 0; i < count; i++) {
            uint8_t *element = elements + i * size;
            set_value(arena, random, field, element);
            // protobuf-c itself takes no NULL there.
            bool is_text = field->type == PROTOBUF_C_TYPE_STRING;
            if (is_text && !*(char **)(void *)element) *(char **)(void *)element = empty;
        }
        *(size_t *)quantifier = count;
        *(uint8_t **)member = elements;
        return;
    }
    set_value(arena, random, field, member);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        *(uint32_t *)quantifier = field->id;
        bool is_default = field->type == PROTOBUF_C_TYPE_STRING && random_below(random, 3) == 0;
        if (is_default) *(const void **)member = field->default_value;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->type != PROTOBUF_C_TYPE_STRING &&
               field->type != PROTOBUF_C_TYPE_MESSAGE) {
        *(protobuf_c_boolean *)quantifier = random_below(random, 2) == 0;
    }
}

static void add_unknown(Arena *arena, Random *random, ProtobufCMessage *message)
{
    static uint8_t data[] = {3, 'a', 'b', 'c'};
    ProtobufCMessageUnknownField field = {1000, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 4, data};
    message->n_unknown_fields = (unsigned)random_below(random, 3);
    message->unknown_fields = arena_zalloc(arena, 3 * sizeof(field));
    CHECK(message->unknown_fields);
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        field.tag = 1000 + i;
        message->unknown_fields[i] = field;
    }
}

static ProtobufCMessage *make_message(Arena *arena, Random *random,
                                      const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = arena_alloc(arena, descriptor->sizeof_message);
    CHECK(message);
    protobuf_c_message_init(descriptor, message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        if (random_below(random, 3) == 0) continue;
        set_field(arena, random, &descriptor->fields[i], message);
    }
    if (random_below(random, 4) == 0) add_unknown(arena, random, message);
    return message;
}

static void check_encoding(const ProtobufCMessage *message)
{
    enum { GUARD = 0x5a };
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *expected = malloc(size + 1), *actual = malloc(size + 1);
    CHECK(expected && actual);
    CHECK_EQ(protobuf_c_message_pack(message, expected), size);
    actual[0] = GUARD;
    CHECK(encode_before(actual + 1, actual + 1 + size, message) == actual + 1);
    if (size > 0) CHECK(!encode_before(actual + 2, actual + 1 + size, message));
    CHECK_EQ(actual[0], GUARD);
    CHECK_BYTES(slice(actual + 1, size), slice(expected, size));
    free(expected);
    free(actual);
}

TEST(encode_is_what_protobuf_c_packs_for_every_message_of_the_contract)
{
    Random random;
    random_seed(&random, 7);
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        for (size_t round = 0; round < ROUNDS; round++) {
            Arena arena;
            arena_init(&arena, (size_t)256 << 20);
            check_encoding(make_message(&arena, &random, METHODS[i].request));
            check_encoding(make_message(&arena, &random, METHODS[i].response));
            arena_free(&arena);
        }
    }
}

TEST(encode_of_nothing_is_nothing)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        Arena arena;
        arena_init(&arena, (size_t)1 << 20);
        ProtobufCMessage *message = arena_alloc(&arena, METHODS[i].request->sizeof_message);
        CHECK(message);
        protobuf_c_message_init(METHODS[i].request, message);
        uint8_t end[1];
        CHECK(encode_before(end, end, message) == end);
        arena_free(&arena);
    }
}
