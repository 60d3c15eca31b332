// Operations. The value is the hash of the request, an issued ID that dates the operation, and the
// reply. A second table, operations_by_age, lists operations in the order of these IDs for pruning.

#include "store/operation.h"

#include "base/limits.h"
#include "store/record.h"

enum { OPERATION_HEADER_BYTES = HASH_BYTES + ULID_BYTES };

Error operation_find(Txn *txn, Slice operation_id, Hash request_hash, bool *out_found,
                     Slice *out_reply)
{
    Key key = key_operation(operation_id);
    Slice value;
    Error error = record_get(txn, TABLE_OPERATIONS, &key, out_found, &value);
    if (error || !*out_found) return error;
    if (value.size < OPERATION_HEADER_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "an operation is shorter than its header");
    }
    if (memcmp(value.bytes, request_hash.bytes, HASH_BYTES) != 0) return ERROR_OPERATION_ID_REUSED;
    return arena_copy(txn->arena, slice_skip(value, OPERATION_HEADER_BYTES), out_reply);
}

static Error operation_prune(Txn *txn)
{
    int64_t oldest_ms = txn->now_ms - store_options(txn->store)->operation_age_ms_max;
    for (int i = 0; i < OPERATION_PRUNE_PER_WRITE; i++) {
        CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
        Error error = kv_cursor_open(txn->kv, TABLE_OPERATIONS_BY_AGE, &cursor);
        if (error) return error;
        KvRow row;
        bool found;
        error = kv_seek(cursor, ulid_slice(&ULID_ZERO), &found, &row);
        if (error || !found) return error;
        if (row.key.size != ULID_BYTES || row.value.size > OPERATION_ID_BYTES_MAX) {
            return error_say(txn->detail, ERROR_CORRUPT, "a row of operations_by_age is damaged");
        }
        Ulid issued = key_id_at(row.key, 0);
        if (ulid_time_ms(issued) >= oldest_ms) return ERROR_NONE;
        Key operation_key = key_operation(row.value);
        Key age_key = key_of_id(issued);
        error = record_delete(txn, TABLE_OPERATIONS, &operation_key, NULL);
        if (!error) error = txn_delete(txn, TABLE_OPERATIONS_BY_AGE, &age_key);
        if (error) return error;
    }
    return ERROR_NONE;
}

Error operation_put(Txn *txn, Slice operation_id, Hash request_hash, Slice reply)
{
    Ulid issued = txn_issue_id(txn);
    uint8_t *value = arena_alloc(txn->arena, OPERATION_HEADER_BYTES + reply.size);
    if (!value) return arena_error(txn->arena);
    memcpy(value, request_hash.bytes, HASH_BYTES);
    memcpy(value + HASH_BYTES, issued.bytes, ULID_BYTES);
    if (reply.size) memcpy(value + OPERATION_HEADER_BYTES, reply.bytes, reply.size);
    Key key = key_operation(operation_id);
    Error error = record_insert(txn, TABLE_OPERATIONS, &key,
                                slice(value, OPERATION_HEADER_BYTES + reply.size));
    if (error) return error;
    key = key_of_id(issued);
    error = txn_put(txn, TABLE_OPERATIONS_BY_AGE, &key, operation_id);
    if (error) return error;
    return operation_prune(txn);
}
