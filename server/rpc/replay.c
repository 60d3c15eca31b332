// Replays. The type of a reply's first field says which record the reply holds.

#include "rpc/replay.h"

#include "store/memory.h"
#include "store/message.h"
#include "store/session.h"
#include "store/todo.h"
#include "wire/wire.h"

// The records that replies hold. Their IDs are their first fields.
typedef struct ReplayRecord {
    const ProtobufCMessageDescriptor *type;
    uint32_t first_id, last_id; // field numbers
} ReplayRecord;

static const ReplayRecord RECORDS[] = {
    {&session__descriptor, FIELD_SESSION_ID, FIELD_SESSION_ID},
    {&memory__descriptor, FIELD_MEMORY_ID, FIELD_MEMORY_SESSION_ID},
    {&todos__descriptor, FIELD_TODOS_SESSION_ID, FIELD_TODOS_SESSION_ID},
    {&message__descriptor, FIELD_MESSAGE_ID, FIELD_MESSAGE_SESSION_ID},
};

// Returns the field of a reply that holds a record, and which record; NULL if there is none.
static const ProtobufCFieldDescriptor *record_field(const Method *method, ReplayRecord *out_record)
{
    const ProtobufCMessageDescriptor *reply = method->response;
    if (reply->n_fields == 0 || reply->fields[0].type != PROTOBUF_C_TYPE_MESSAGE) return NULL;
    for (size_t i = 0; i < sizeof(RECORDS) / sizeof(RECORDS[0]); i++) {
        if (reply->fields[0].descriptor != RECORDS[i].type) continue;
        *out_record = RECORDS[i];
        return &reply->fields[0];
    }
    return NULL;
}

Error replay_shrink(Rpc *rpc, Slice body, Slice *out)
{
    *out = body;
    ReplayRecord record;
    const ProtobufCFieldDescriptor *place = record_field(rpc->method, &record);
    WireField field;
    if (!place || !wire_find(body, place->id, &field)) return ERROR_NONE;

    Slice rest = field.bytes, ids = {field.bytes.bytes, 0};
    WireField id;
    while (wire_next(&rest, &id) && id.number <= record.last_id && id.type == WIRE_BYTES) {
        ids.size = (size_t)(rest.bytes - ids.bytes);
    }
    uint8_t *bytes =
        arena_alloc(&rpc->arena, ids.size + WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX);
    if (!bytes) return arena_error(&rpc->arena);
    *out = slice(bytes, wire_put_bytes_field(bytes, place->id, ids));
    return ERROR_NONE;
}

static Error expand_record(Rpc *rpc, const ProtobufCFieldDescriptor *place, Ulid first, Ulid second)
{
    Txn *txn = rpc->txn;
    Buffer *out = &rpc->reply;
    const ProtobufCMessageDescriptor *type = place->descriptor;
    if (type == &session__descriptor) {
        return session_append_to(txn, first, /* is_brief= */ true, place->id, out);
    }
    if (type == &memory__descriptor) return memory_append_to(txn, second, first, place->id, out);
    if (type == &todos__descriptor) {
        SessionBrief brief;
        Error error = session_brief(txn, first, &brief);
        return error ? error : todo_append_to(txn, first, place->id, out);
    }
    return message_append_to(txn, second, first, place->id, out);
}

Error replay_expand(Rpc *rpc, Slice small)
{
    ReplayRecord record;
    const ProtobufCFieldDescriptor *place = record_field(rpc->method, &record);
    WireField field, id;
    if (!place || !wire_find(small, place->id, &field)) {
        return buffer_append(&rpc->reply, small);
    }
    Ulid first = ULID_ZERO, second = ULID_ZERO;
    if (wire_find(field.bytes, record.first_id, &id)) (void)ulid_parse(id.bytes, &first);
    if (wire_find(field.bytes, record.last_id, &id)) (void)ulid_parse(id.bytes, &second);
    Error error = expand_record(rpc, place, first, second);
    if (error_status(error) != STATUS_NOT_FOUND) return error;
    rpc->detail.text[0] = '\0';
    return buffer_append(&rpc->reply, small);
}
