// Replays. Which record a reply holds is told by the type of its first field.

#include "rpc/replay.h"

#include "store/memory.h"
#include "store/message.h"
#include "store/session.h"
#include "store/todo.h"
#include "wire/wire.h"

enum { RECORD_FIELD = 1, ID_FIELD = 1, SECOND_ID_FIELD = 2 };

static const ProtobufCMessageDescriptor *record_of(const Method *method)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method->response, RECORD_FIELD);
    if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE) return NULL;
    const ProtobufCMessageDescriptor *record = field->descriptor;
    bool is_record = record == &session__descriptor || record == &memory__descriptor ||
                     record == &todos__descriptor || record == &message__descriptor;
    return is_record ? record : NULL;
}

Error replay_shrink(Rpc *rpc, Slice body, Slice *out)
{
    *out = body;
    const ProtobufCMessageDescriptor *record = record_of(rpc->method);
    WireField field;
    if (!record || !wire_find(body, RECORD_FIELD, &field)) return ERROR_NONE;

    // The ids are the first fields of a record, except that a todo list has one.
    Slice rest = field.bytes, ids = {field.bytes.bytes, 0};
    WireField id;
    uint32_t last_number = record == &todos__descriptor ? ID_FIELD : SECOND_ID_FIELD;
    while (wire_next(&rest, &id) && id.number <= last_number && id.type == WIRE_BYTES) {
        ids.size = (size_t)(rest.bytes - ids.bytes);
    }
    uint8_t *bytes =
        arena_alloc(&rpc->arena, ids.size + WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX);
    if (!bytes) return arena_error(&rpc->arena);
    *out = slice(bytes, wire_put_bytes_field(bytes, RECORD_FIELD, ids));
    return ERROR_NONE;
}

static Error expand_record(Rpc *rpc, const ProtobufCMessageDescriptor *record, Ulid first,
                           Ulid second)
{
    Txn *txn = rpc->txn;
    Buffer *out = &rpc->reply;
    if (record == &session__descriptor) {
        return session_append_to(txn, first, /* is_brief= */ true, RECORD_FIELD, out);
    }
    if (record == &memory__descriptor) {
        return memory_append_to(txn, second, first, RECORD_FIELD, out);
    }
    if (record == &todos__descriptor) {
        SessionBrief brief;
        Error error = session_brief(txn, first, &brief);
        return error ? error : todo_append_to(txn, first, RECORD_FIELD, out);
    }
    return message_append_to(txn, second, first, RECORD_FIELD, out);
}

Error replay_expand(Rpc *rpc, Slice small)
{
    const ProtobufCMessageDescriptor *record = record_of(rpc->method);
    WireField field, id;
    if (!record || !wire_find(small, RECORD_FIELD, &field)) {
        return buffer_append(&rpc->reply, small);
    }
    Ulid first = ULID_ZERO, second = ULID_ZERO;
    if (wire_find(field.bytes, ID_FIELD, &id)) (void)ulid_parse(id.bytes, &first);
    if (wire_find(field.bytes, SECOND_ID_FIELD, &id)) (void)ulid_parse(id.bytes, &second);
    Error error = expand_record(rpc, record, first, second);
    if (error_status(error) != STATUS_NOT_FOUND) return error;
    rpc->detail.text[0] = '\0';
    return buffer_append(&rpc->reply, small);
}
