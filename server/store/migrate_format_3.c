// Format 3. Its functions put rows through a transaction whose arena they use.

#include "store/migrate_format_3.h"

#include "fields.h"
#include "store/event.h"
#include "store/message.h"
#include "store/operation.h"
#include "store/record.h"
#include "wire/wire.h"

// An operation of format 2: the hash of its request, its issued ID, its reply.
enum { OLD_OPERATION_HEADER_BYTES = HASH_BYTES + ULID_BYTES };

Error format_3_state(Txn *txn, Slice old)
{
    Error error = meta_decode_state_2(old, txn->detail, &txn->state);
    if (error) return error;
    txn->state.first_operation = 1;
    txn->state.time = store_time_begin(&store_options(txn->store)->clock, HASH_ZERO);
    txn->state_is_dirty = true;
    return ERROR_NONE;
}

static int64_t store_time_of(const Txn *txn, FormatThree *walk, int64_t created_at)
{
    if (created_at > txn->state.time.now_ms) created_at = txn->state.time.now_ms;
    if (created_at > walk->last_at) walk->last_at = created_at;
    return walk->last_at;
}

void format_3_event(const Txn *txn, FormatThree *walk, Slice first, uint8_t *out_header)
{
    // Fields are stored in order and no large one comes before this one, so it is in the first
    // chunk.
    int64_t created_at = 0;
    WireField field;
    while (wire_next(&first, &field) && field.number <= FIELD_EVENT_CREATED_AT) {
        if (field.number == FIELD_EVENT_CREATED_AT) created_at = (int64_t)field.value;
    }
    bytes_put_u64(out_header, (uint64_t)store_time_of(txn, walk, created_at));
}

Error format_3_operation(Txn *txn, FormatThree *walk, Ulid issued, Slice operation_id)
{
    Key key = key_operation(operation_id);
    Slice old;
    bool found;
    Error error = record_get(txn, TABLE_OPERATIONS, &key, &found, &old);
    if (!error && found) error = arena_copy(txn->arena, old, &old);
    if (error || !found || old.size < OLD_OPERATION_HEADER_BYTES) return error;
    OperationRecord record = {
        .operation_id = operation_id,
        .reply = slice_skip(old, OLD_OPERATION_HEADER_BYTES),
        .at = store_time_of(txn, walk, ulid_time_ms(issued)),
    };
    memcpy(record.request_hash.bytes, old.bytes, HASH_BYTES);
    error = record_delete(txn, TABLE_OPERATIONS, &key, NULL);
    return error ? error : operation_record_put(txn, &record);
}

Error format_3_message(Txn *txn, Ulid session, Ulid message, Slice first)
{
    External *external;
    Error error = message_external_in_chunk(txn, first, &external);
    if (error || !external) return error;
    Key key = message_external_key(external, session);
    return txn_put(txn, TABLE_MESSAGE_EXTERNAL, &key, ulid_slice(&message));
}
