// Unpacking replies into an arena, in one pass.
//
// protobuf_c_message_unpack scans a message, notes each field, counts repeated ones, then parses
// the notes, and it allocates each string. For a page of a history that takes more time than
// everything else together. Here each field is written to its place at once. For a repeated field,
// the fields that follow it are counted first, because encoders write them one after the other.
//
// This code only handles what an encoder of this contract writes. A field that is unknown, out of
// place, of another type or malformed makes a message unusual, and protobuf-c unpacks an unusual
// message from its beginning. So protobuf-c decides what is accepted, what is refused, and what odd
// input means. What was unpacked before stays in the arena until the arena is reset. A byte is read
// once here, and once by protobuf-c for each unusual message around it.

#include "unpack.h"

#include <string.h>

#include "base/arena.h"
#include "wire/wire.h"

enum {
    TAG_BYTES_MAX = 2,    // numbers up to 2047; a longer tag is unusual …
    LENGTH_BYTES_MAX = 4, // … and so is a longer length: no reply is that large
};

typedef enum Outcome { UNPACKED, UNUSUAL, REFUSED } Outcome;

typedef struct Field {
    const ProtobufCFieldDescriptor *type;
    const uint8_t *tag; // the encoded tag
    size_t tag_bytes;
    WireType wire;
} Field;

typedef struct Unpacking {
    Arena *arena;
    unsigned depth;
    const uint8_t *at, *end;
    uint8_t *message; // the message that is filled
} Unpacking;

static ProtobufCMessage *unpack_into(Arena *arena, const ProtobufCMessageDescriptor *type,
                                     Slice bytes, unsigned depth);
static Outcome unpack_fields(Unpacking *state, const ProtobufCMessageDescriptor *type);

ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
                         Slice bytes)
{
    Arena *arena = arena_of_allocator(allocator);
    if (!arena) return protobuf_c_message_unpack(type, allocator, bytes.size, bytes.bytes);
    return unpack_into(arena, type, bytes, 0);
}

static ProtobufCMessage *unpack_into(Arena *arena, const ProtobufCMessageDescriptor *type,
                                     Slice bytes, unsigned depth)
{
    if (depth < UNPACK_DEPTH_MAX && type->message_init) {
        ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
        if (!message) return NULL;
        protobuf_c_message_init(type, message);
        if (bytes.size == 0) return message;
        Unpacking state = {arena, depth, bytes.bytes, bytes.bytes + bytes.size, (uint8_t *)message};
        Outcome outcome = unpack_fields(&state, type);
        if (outcome != UNUSUAL) return outcome == UNPACKED ? message : NULL;
    }
    return protobuf_c_message_unpack(type, &arena->allocator, bytes.size, bytes.bytes);
}

// Finds a field by its number, in runs of numbers without a gap. The run after the last one only
// has an end.
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type,
                                                uint32_t number)
{
    for (unsigned i = 0; i < type->n_field_ranges; i++) {
        const ProtobufCIntRange *range = &type->field_ranges[i];
        uint32_t offset = number - (uint32_t)range->start_value; // wraps if the number is below
        if (offset < range[1].orig_index - range->orig_index) {
            return &type->fields[range->orig_index + offset];
        }
    }
    return NULL;
}

static inline bool read_tag(Unpacking *state, const ProtobufCMessageDescriptor *type, Field *out)
{
    const uint8_t *at = state->at;
    uint32_t tag = *at++;
    if (tag >= 0x80) {
        if (at == state->end || *at >= 0x80) return false;
        tag = (tag & 0x7F) | (uint32_t)*at++ << 7;
    }
    out->tag = state->at;
    out->tag_bytes = (size_t)(at - state->at);
    out->wire = (WireType)(tag & 7);
    out->type = field_of(type, tag >> 3);
    state->at = at;
    return out->type != NULL;
}

static inline bool read_varint(Unpacking *state, uint64_t *out_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * WIRE_VARINT_BYTES_MAX; shift += 7) {
        if (state->at == state->end) return false;
        uint64_t byte = *state->at++;
        if (shift == 63 && byte > 1) return false; // 9 × 7 bits came before it
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

static inline bool read_content(const uint8_t **inout_at, const uint8_t *end, Slice *out)
{
    const uint8_t *at = *inout_at;
    size_t size = 0;
    for (unsigned i = 0; i < LENGTH_BYTES_MAX && at < end; i++) {
        uint8_t byte = *at++;
        size |= (size_t)(byte & 0x7F) << (7 * i);
        if (byte >= 0x80) continue;
        if (size > (size_t)(end - at)) return false;
        *out = slice(at, size);
        *inout_at = at + size;
        return true;
    }
    return false;
}

static inline Outcome put_number(Unpacking *state, const Field *field, uint8_t *place)
{
    uint64_t value;
    if (field->wire != WIRE_VARINT || !read_varint(state, &value)) return UNUSUAL;
    int32_t small = field->type->type == PROTOBUF_C_TYPE_BOOL ? value != 0 : (int32_t)value;
    bool is_long =
        field->type->type == PROTOBUF_C_TYPE_INT64 || field->type->type == PROTOBUF_C_TYPE_UINT64;
    if (is_long)
        memcpy(place, &value, sizeof(value));
    else
        memcpy(place, &small, sizeof(small));
    return UNPACKED;
}

// An empty text gets memory of its own too: in a oneof protobuf-c treats its shared empty text as
// absent.
static inline Outcome put_text(Unpacking *state, Slice content, uint8_t *place)
{
    char *text = arena_string(state->arena, content);
    if (!text) return REFUSED;
    memcpy(place, &text, sizeof(text));
    return UNPACKED;
}

static Outcome put_bytes(Unpacking *state, Slice content, uint8_t *place)
{
    ProtobufCBinaryData data = {content.size, NULL};
    if (content.size > 0) {
        data.data = arena_alloc(state->arena, content.size);
        if (!data.data) return REFUSED;
        memcpy(data.data, content.bytes, content.size);
    }
    memcpy(place, &data, sizeof(data));
    return UNPACKED;
}

static Outcome put_message(Unpacking *state, const Field *field, Slice content, uint8_t *place)
{
    const ProtobufCMessageDescriptor *type = field->type->descriptor;
    ProtobufCMessage *message = unpack_into(state->arena, type, content, state->depth + 1);
    if (!message) return REFUSED;
    memcpy(place, &message, sizeof(message));
    return UNPACKED;
}

static inline Outcome put_content(Unpacking *state, const Field *field, uint8_t *place)
{
    Slice content;
    if (field->wire != WIRE_BYTES || !read_content(&state->at, state->end, &content)) {
        return UNUSUAL;
    }
    switch ((unsigned)field->type->type) {
    case PROTOBUF_C_TYPE_STRING: return put_text(state, content, place);
    case PROTOBUF_C_TYPE_BYTES: return put_bytes(state, content, place);
    default: return put_message(state, field, content, place);
    }
}

// Returns how many fields with this tag follow each other here; 0 if they are malformed.
static size_t count_run(const Unpacking *state, const Field *field)
{
    const uint8_t *at = state->at;
    size_t count = 0;
    for (;;) {
        Slice content;
        if (!read_content(&at, state->end, &content)) return 0;
        count++;
        if ((size_t)(state->end - at) < field->tag_bytes || at[0] != field->tag[0]) return count;
        if (field->tag_bytes == 2 && at[1] != field->tag[1]) return count;
        at += field->tag_bytes;
    }
}

static Outcome put_repeated(Unpacking *state, const Field *field)
{
    bool is_text = field->type->type == PROTOBUF_C_TYPE_STRING;
    size_t count;
    uint8_t *count_place = state->message + field->type->quantifier_offset;
    memcpy(&count, count_place, sizeof(count));
    if (count > 0 || field->wire != WIRE_BYTES) return UNUSUAL; // a second run, or packed numbers
    if (!is_text && field->type->type != PROTOBUF_C_TYPE_MESSAGE) return UNUSUAL;
    count = count_run(state, field);
    if (count == 0) return UNUSUAL;
    uint8_t *items = arena_alloc(state->arena, count * sizeof(void *));
    if (!items) return REFUSED;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) state->at += field->tag_bytes;
        Outcome outcome = put_content(state, field, items + i * sizeof(void *));
        if (outcome != UNPACKED) return outcome;
    }
    memcpy(count_place, &count, sizeof(count));
    memcpy(state->message + field->type->offset, &items, sizeof(items));
    return UNPACKED;
}

// Of a text or number that comes twice the last one counts. A oneof or a message that comes twice
// would have to be freed or merged: protobuf-c does that.
static Outcome put_single(Unpacking *state, const Field *field)
{
    uint8_t *place = state->message + field->type->offset;
    if (field->type->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint8_t *case_place = state->message + field->type->quantifier_offset;
        uint32_t set;
        memcpy(&set, case_place, sizeof(set));
        if (set != 0) return UNUSUAL;
        memcpy(case_place, &field->type->id, sizeof(set));
    } else if (field->type->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *before;
        memcpy(&before, place, sizeof(before));
        if (before) return UNUSUAL;
    }
    switch ((unsigned)field->type->type) {
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return put_number(state, field, place);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return put_content(state, field, place);
    default: return UNUSUAL;
    }
}

static Outcome unpack_fields(Unpacking *state, const ProtobufCMessageDescriptor *type)
{
    Outcome outcome = UNPACKED;
    while (outcome == UNPACKED && state->at < state->end) {
        Field field;
        if (!read_tag(state, type, &field)) return UNUSUAL;
        switch ((unsigned)field.type->label) {
        case PROTOBUF_C_LABEL_NONE: outcome = put_single(state, &field); break;
        case PROTOBUF_C_LABEL_REPEATED: outcome = put_repeated(state, &field); break;
        default: outcome = UNUSUAL; // a label of proto2
        }
    }
    return outcome;
}
