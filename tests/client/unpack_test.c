// Unpacking into an arena does what protobuf-c does: with what encoders write, with what they never
// would, and with damaged bytes.

#include "unpack.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "harness.h"
#include "os/random.h"
#include "rpc/dispatch.h"
#include "wire/wire.h"

enum { RUN_MAX = 4, TEXT_BYTES_MAX = 200, FIELD_NUMBER_MAX = 3000, DEPTH_FULL = 3 };

typedef struct Maker {
    Random random;
    bool is_odd; // writes what no encoder would
} Maker;

static bool chance(Maker *maker, uint64_t of)
{
    return random_below(&maker->random, of) == 0;
}

static void must(Error error)
{
    CHECK_EQ(error, ERROR_NONE);
}

static void write_message(Maker *maker, const ProtobufCMessageDescriptor *type, unsigned depth,
                          Buffer *out);

static uint64_t any_number(Maker *maker)
{
    return random_next(&maker->random) >> random_below(&maker->random, 64);
}

static void write_text(Maker *maker, uint32_t number, Buffer *out)
{
    uint8_t text[TEXT_BYTES_MAX];
    size_t size = random_below(&maker->random, TEXT_BYTES_MAX + 1);
    if (chance(maker, 4)) size = 0;
    random_fill(&maker->random, text, size);
    for (size_t i = 0; i < size && !maker->is_odd; i++)
        text[i] = 'a' + text[i] % 26;
    must(wire_append_bytes(out, number, slice(text, size)));
}

static void write_nested(Maker *maker, const ProtobufCFieldDescriptor *field, unsigned depth,
                         Buffer *out)
{
    CLEANUP(buffer_free) Buffer nested = {.bytes = NULL};
    must(buffer_reset(&nested, 0));
    write_message(maker, field->descriptor, depth + 1, &nested);
    must(wire_append_bytes(out, field->id, buffer_slice(&nested)));
}

// Of a wrong type; or, if there is no such field, of one that may come.
static void write_odd(Maker *maker, uint32_t number, Buffer *out)
{
    uint8_t bytes[WIRE_TAG_BYTES_MAX + 8];
    static const WireType TYPES[] = {WIRE_FIXED32, WIRE_FIXED64, (WireType)3, (WireType)7};
    switch (random_below(&maker->random, 6)) {
    case 0: must(wire_append_varint(out, number, any_number(maker))); break;
    case 1: write_text(maker, number, out); break;
    default: {
        WireType type = TYPES[random_below(&maker->random, chance(maker, 8) ? 4 : 2)];
        size_t size = wire_put_tag(bytes, number, type);
        size_t value = type == WIRE_FIXED32 ? 4 : type == WIRE_FIXED64 ? 8 : 0;
        random_fill(&maker->random, bytes + size, value);
        must(buffer_append(out, slice(bytes, size + value)));
    }
    }
}

static void write_field(Maker *maker, const ProtobufCFieldDescriptor *field, unsigned depth,
                        Buffer *out)
{
    switch ((unsigned)field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES: write_text(maker, field->id, out); break;
    case PROTOBUF_C_TYPE_MESSAGE: write_nested(maker, field, depth, out); break;
    case PROTOBUF_C_TYPE_BOOL: must(wire_append_varint(out, field->id, 1)); break;
    default: must(wire_append_varint(out, field->id, any_number(maker)));
    }
}

static bool is_packed(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED && field->type != PROTOBUF_C_TYPE_MESSAGE &&
           field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES;
}

static void write_message(Maker *maker, const ProtobufCMessageDescriptor *type, unsigned depth,
                          Buffer *out)
{
    uint32_t oneof = 0; // of whose fields one is there already, by the place of its case
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (!chance(maker, depth < DEPTH_FULL ? 2 : 2 + (uint64_t)depth * 4)) continue;
        if (is_packed(field) && !maker->is_odd) continue;
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && !maker->is_odd) {
            if (oneof == field->quantifier_offset) continue;
            oneof = field->quantifier_offset;
        }
        bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = is_repeated ? 1 + random_below(&maker->random, RUN_MAX) : 1;
        while (count-- > 0)
            write_field(maker, field, depth, out);
    }
    while (maker->is_odd && chance(maker, 4)) {
        const ProtobufCFieldDescriptor *field =
            type->n_fields ? &type->fields[random_below(&maker->random, type->n_fields)] : NULL;
        if (field && chance(maker, 2))
            write_field(maker, field, depth, out);
        else if (field && chance(maker, 2))
            write_odd(maker, field->id, out);
        else
            write_odd(maker, (uint32_t)(1 + random_below(&maker->random, FIELD_NUMBER_MAX)), out);
    }
}

static Slice packed(const ProtobufCMessage *message, Buffer *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *room;
    must(buffer_reset(out, 0));
    must(buffer_reserve(out, size, &room));
    CHECK_EQ(protobuf_c_message_pack(message, room), size);
    buffer_grow(out, size);
    return buffer_slice(out);
}

// Whether it was accepted: by both, or by neither.
static bool check_same(const ProtobufCMessageDescriptor *type, Slice bytes)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, SIZE_MAX);
    ProtobufCMessage *ours = unpack(type, &arena.allocator, bytes);
    ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.bytes);
    CHECK_EQ(ours != NULL, theirs != NULL);
    if (!ours) return false;
    CLEANUP(buffer_free) Buffer a = {.bytes = NULL};
    CLEANUP(buffer_free) Buffer b = {.bytes = NULL};
    CHECK_BYTES(packed(ours, &a), packed(theirs, &b));
    protobuf_c_message_free_unpacked(theirs, NULL);
    return true;
}

// Exactly as many bytes as there are, so that a sanitizer sees who reads on.
static bool check_damaged(Maker *maker, const ProtobufCMessageDescriptor *type, Slice bytes)
{
    size_t size = chance(maker, 2) ? random_below(&maker->random, bytes.size + 1) : bytes.size;
    uint8_t *damaged = malloc(size + 1);
    CHECK(damaged != NULL);
    memcpy(damaged + 1, bytes.bytes, size);
    for (uint64_t i = random_below(&maker->random, 4); i > 0 && size > 0; i--)
        damaged[1 + random_below(&maker->random, size)] = (uint8_t)random_next(&maker->random);
    bool is_accepted = check_same(type, slice(damaged + 1, size));
    free(damaged);
    return is_accepted;
}

static void check_all(Maker *maker, void (*check)(Maker *, const ProtobufCMessageDescriptor *))
{
    random_seed(&maker->random, test_seed());
    size_t rounds = test_scaled(60);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < METHOD_COUNT; i++) {
            check(maker, METHODS[i].response);
            check(maker, METHODS[i].request);
        }
    }
}

static void check_made(Maker *maker, const ProtobufCMessageDescriptor *type)
{
    CLEANUP(buffer_free) Buffer made = {.bytes = NULL};
    must(buffer_reset(&made, 0));
    write_message(maker, type, 0, &made);
    bool is_accepted = check_same(type, buffer_slice(&made));
    if (!maker->is_odd) CHECK(is_accepted);
}

static void check_made_and_damaged(Maker *maker, const ProtobufCMessageDescriptor *type)
{
    CLEANUP(buffer_free) Buffer made = {.bytes = NULL};
    must(buffer_reset(&made, 0));
    write_message(maker, type, 0, &made);
    for (int i = 0; i < 8; i++)
        (void)check_damaged(maker, type, buffer_slice(&made));
}

TEST(what_encoders_write_is_unpacked_as_protobuf_c_does)
{
    Maker maker = {.is_odd = false};
    check_all(&maker, check_made);
}

TEST(what_no_encoder_writes_is_unpacked_or_refused_as_protobuf_c_does)
{
    Maker maker = {.is_odd = true};
    check_all(&maker, check_made);
}

TEST(damaged_bytes_are_unpacked_or_refused_as_protobuf_c_does)
{
    Maker maker = {.is_odd = false};
    check_all(&maker, check_made_and_damaged);
    maker.is_odd = true;
    check_all(&maker, check_made_and_damaged);
}

static void check_bytes(const uint8_t *bytes, size_t size, bool is_accepted)
{
    CHECK_EQ(check_same(&tine__v1__message__descriptor, slice(bytes, size)), is_accepted);
}

TEST(each_oddity_is_as_protobuf_c_has_it)
{
    uint8_t empty_twice[] = {0x0A, 0x00, 0x0A, 0x01, 'a'};
    check_bytes(empty_twice, sizeof(empty_twice), true);
    uint8_t merged[] = {0x4A, 0x02, 0x08, 0x01, 0x4A, 0x02, 0x10, 0x02}; // two pieces of one usage
    check_bytes(merged, sizeof(merged), true);
    uint8_t apart[] = {0x92, 0x02, 0x00, 0x0A, 0x00, 0x92, 0x02, 0x00}; // a part, the id, a part
    check_bytes(apart, sizeof(apart), true);
    uint8_t oneof[] = {0x92, 0x02, 0x04, 0x52, 0x00, 0x5A, 0x00}; // a part that is two things
    check_bytes(oneof, sizeof(oneof), true);
    uint8_t long_tag[] = {0x8A, 0x80, 0x00, 0x01, 'a'}; // the id's, in three bytes
    check_bytes(long_tag, sizeof(long_tag), true);
    uint8_t too_long_tag[] = {0x8A, 0x80, 0x80, 0x80, 0x80, 0x00, 0x01, 'a'};
    check_bytes(too_long_tag, sizeof(too_long_tag), false);
    uint8_t long_length[] = {0x0A, 0x81, 0x80, 0x80, 0x80, 0x00, 'a'};
    check_bytes(long_length, sizeof(long_length), true);
    uint8_t too_long_length[] = {0x0A, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 'a'};
    check_bytes(too_long_length, sizeof(too_long_length), false);
    uint8_t far_bool[] = {0x88, 0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02};
    check_bytes(far_bool, sizeof(far_bool), true); // beyond the 64th bit
    uint8_t negative[] = {0x28, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    check_bytes(negative, sizeof(negative), true); // a kind of -1
    uint8_t nothing[] = {0x0A};
    check_bytes(nothing, 0, true);
    check_bytes(nothing, 1, false);
    uint8_t group[] = {0x0B, 0x0C};
    check_bytes(group, sizeof(group), false);
    uint8_t number_0[] = {0x02, 0x00};
    check_bytes(number_0, sizeof(number_0), false);
}

static size_t asked;

static void *count_asked(void *data, size_t size)
{
    asked++;
    return arena_alloc(data, size);
}

// protobuf-c asks the arena's own allocator; whoever finds the arena behind a copy of it does not.
TEST(what_encoders_write_is_not_left_to_protobuf_c)
{
    Maker maker = {.is_odd = false};
    random_seed(&maker.random, test_seed());
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, SIZE_MAX);
    ProtobufCAllocator copy = arena.allocator;
    arena.allocator.alloc = count_asked;
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        CLEANUP(buffer_free) Buffer made = {.bytes = NULL};
        must(buffer_reset(&made, 0));
        write_message(&maker, METHODS[i].response, 0, &made);
        CHECK(unpack(METHODS[i].response, &copy, buffer_slice(&made)) != NULL);
    }
    CHECK_EQ(asked, 0);
}

TEST(an_arena_that_has_nothing_left_refuses)
{
    Maker maker = {.is_odd = false};
    random_seed(&maker.random, test_seed());
    CLEANUP(buffer_free) Buffer made = {.bytes = NULL};
    must(buffer_reset(&made, 0));
    while (buffer_size(&made) == 0)
        write_message(&maker, &tine__v1__message__descriptor, 0, &made);
    bool is_enough = false;
    for (size_t budget = 0; !is_enough; budget += 16) {
        CLEANUP(arena_free) Arena arena;
        arena_init(&arena, budget);
        is_enough =
            unpack(&tine__v1__message__descriptor, &arena.allocator, buffer_slice(&made)) != NULL;
        CHECK_EQ(arena.is_exhausted, !is_enough);
        CHECK(budget < 64 * buffer_size(&made) + 4096);
    }
}
