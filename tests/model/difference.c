// Comparing two records field by field, by their descriptors.

#include "run.h"

typedef struct Place {
    char path[200];
    char why[400];
} Place;

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b, Place *place);

static const void *member(const ProtobufCMessage *message, size_t offset)
{
    return (const uint8_t *)message + offset;
}

static bool same_text(const char *a, const char *b, Place *place)
{
    if (strcmp(a, b) == 0) return true;
    snprintf(place->why, sizeof(place->why), "is '%.150s', not '%.150s'", a, b);
    return false;
}

static bool same_number(int64_t a, int64_t b, Place *place)
{
    if (a == b) return true;
    snprintf(place->why, sizeof(place->why), "is %lld, not %lld", (long long)a, (long long)b);
    return false;
}

// One value of a field, wherever it stands.
static bool same_value(const ProtobufCFieldDescriptor *field, const void *a, const void *b,
                       Place *place)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: return same_text(*(char *const *)a, *(char *const *)b, place);
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *x = a, *y = b;
        bool is_same = x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
        return same_number(is_same, true, place);
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *x = *(ProtobufCMessage *const *)a;
        const ProtobufCMessage *y = *(ProtobufCMessage *const *)b;
        if (!x || !y) return same_number(x != NULL, y != NULL, place);
        return same_message(x, y, place);
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return same_number(*(const int64_t *)a, *(const int64_t *)b, place);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BOOL: return same_number(*(const int32_t *)a, *(const int32_t *)b, place);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: break;
    }
    snprintf(place->why, sizeof(place->why), "is of a type that the contract does not use");
    return false;
}

static size_t value_bytes(const ProtobufCFieldDescriptor *field)
{
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return sizeof(int64_t);
    default: return sizeof(int32_t);
    }
}

static bool same_list(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
                      const ProtobufCMessage *b, Place *place)
{
    size_t count = *(const size_t *)member(a, field->quantifier_offset);
    size_t wanted = *(const size_t *)member(b, field->quantifier_offset);
    if (!same_number((int64_t)count, (int64_t)wanted, place)) return false;
    const uint8_t *x = *(uint8_t *const *)member(a, field->offset);
    const uint8_t *y = *(uint8_t *const *)member(b, field->offset);
    for (size_t i = 0; i < count; i++) {
        if (!same_value(field, x, y, place)) return false;
        x += value_bytes(field);
        y += value_bytes(field);
    }
    return true;
}

static bool same_field(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
                       const ProtobufCMessage *b, Place *place)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return same_list(field, a, b, place);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t x = *(const uint32_t *)member(a, field->quantifier_offset);
        uint32_t y = *(const uint32_t *)member(b, field->quantifier_offset);
        if (x != y) return same_number(x, y, place);
        if (x != field->id) return true;
    }
    return same_value(field, member(a, field->offset), member(b, field->offset), place);
}

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b, Place *place)
{
    for (unsigned i = 0; i < a->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &a->descriptor->fields[i];
        size_t size = strlen(place->path);
        if (same_field(field, a, b, place)) continue;
        char inner[sizeof(place->path)];
        snprintf(inner, sizeof(inner), "%s", place->path);
        snprintf(place->path, sizeof(place->path), ".%s%.150s", field->name, inner + size);
        return false;
    }
    return true;
}

void run_compare(Run *run, const char *what, const ProtobufCMessage *actual,
                 const ProtobufCMessage *expected)
{
    Place place = {.path = ""};
    if (same_message(actual, expected, &place)) return;
    run_differs(run, "%s: %s%s %s", what, actual->descriptor->short_name, place.path, place.why);
}

void run_compare_session(Run *run, const Session *actual, ModelSession *session, bool is_brief)
{
    ModelTexts texts;
    Session expected = model_session_view(session, run->now_ms, is_brief, &texts);
    // The children of a purged session lose their parent when its slices have run.
    if (run->is_purging && !*expected.parent_id) expected.parent_id = actual->parent_id;
    char what[64];
    snprintf(what, sizeof(what), "session %s", session->id);
    run_compare(run, what, &actual->base, &expected.base);
}
