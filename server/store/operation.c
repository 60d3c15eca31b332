// Operations. They are numbered in the order in which they were stored. A second table,
// operations_by_age, lists them in that order for pruning: its new rows go to its end, so they
// share pages.

#include "store/operation.h"

#include "base/limits.h"
#include "store/planted.h"
#include "store/record.h"

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

static Error refuse_age_row(Txn *txn)
{
    return error_say(txn->detail, ERROR_CORRUPT, "a row of operations_by_age is damaged");
}

static bool age_row_is_valid(Slice value)
{
    return value.size > OPERATION_AGE_HEADER_BYTES &&
           value.size <= OPERATION_AGE_HEADER_BYTES + OPERATION_ID_BYTES_MAX;
}

// Reads the store time of the oldest operation. It is remembered while that operation is the
// oldest, because each operation that is put needs it.
static Error operation_date_oldest(Txn *txn, bool *out_found, int64_t *out_at)
{
    StoreState *state = &txn->state;
    *out_found = state->dated_operation == state->first_operation;
    if (!*out_found) {
        Key key = key_operation_age(state->first_operation);
        Slice value;
        Error error = txn_get(txn, TABLE_OPERATIONS_BY_AGE, &key, out_found, &value);
        if (error == ERROR_CORRUPT) return ERROR_NONE; // not found: it is deleted
        if (error || !*out_found) return error;
        if (!age_row_is_valid(value)) return refuse_age_row(txn);
        state->dated_operation = state->first_operation;
        state->dated_operation_at = (int64_t)bytes_get_u64(value.bytes);
    }
    *out_at = state->dated_operation_at;
    return ERROR_NONE;
}

// A row whose checksum is wrong does not say which operation it is of. It is deleted alone, because
// it must not keep others from writing.
static Error operation_delete_oldest(Txn *txn)
{
    Key age_key = key_operation_age(txn->state.first_operation);
    Slice value;
    bool found;
    Error error = txn_get(txn, TABLE_OPERATIONS_BY_AGE, &age_key, &found, &value);
    if (error == ERROR_CORRUPT) {
        error = txn_delete(txn, TABLE_OPERATIONS_BY_AGE, &age_key);
        found = false;
    }
    if (error) return error;
    if (found && !age_row_is_valid(value)) return refuse_age_row(txn);
    if (found) {
        Key key = key_operation(slice_skip(value, OPERATION_AGE_HEADER_BYTES));
        error = record_delete(txn, TABLE_OPERATIONS, &key, NULL);
        if (!error) error = txn_delete(txn, TABLE_OPERATIONS_BY_AGE, &age_key);
        if (error) return error;
    }
    txn->state.first_operation++;
    txn->state_is_dirty = true;
    return ERROR_NONE;
}

static Error operation_prune(Txn *txn)
{
    const StoreOptions *options = store_options(txn->store);
    StoreState *state = &txn->state;
    int64_t now_ms = PLANTED(6, txn->now_ms, state->time.now_ms);
    int64_t oldest_ms = now_ms - options->operation_age_ms_max;
    for (int i = 0; i < OPERATION_PRUNE_PER_WRITE; i++) {
        if (state->first_operation > state->last_operation) return ERROR_NONE;
        uint64_t count = state->last_operation - state->first_operation + 1;
        if (count <= options->operation_count_max) {
            bool found;
            int64_t at = 0;
            Error error = operation_date_oldest(txn, &found, &at);
            if (error) return error;
            if (found && at >= oldest_ms) return ERROR_NONE;
        }
        Error error = operation_delete_oldest(txn);
        if (error) return error;
    }
    return ERROR_NONE;
}

Error operation_record_put(Txn *txn, const OperationRecord *record)
{
    uint64_t number = ++txn->state.last_operation;
    txn->state_is_dirty = true;
    Slice id = record->operation_id, reply = record->reply;
    uint8_t *value = arena_alloc(txn->arena, OPERATION_HEADER_BYTES + reply.size);
    if (!value) return arena_error(txn->arena);
    memcpy(value, record->request_hash.bytes, HASH_BYTES);
    bytes_put_u64(value + HASH_BYTES, number);
    if (reply.size) memcpy(value + OPERATION_HEADER_BYTES, reply.bytes, reply.size);
    Key key = key_operation(id);
    Error error = record_insert(txn, TABLE_OPERATIONS, &key,
                                slice(value, OPERATION_HEADER_BYTES + reply.size));
    if (error) return error;

    uint8_t age[OPERATION_AGE_HEADER_BYTES + OPERATION_ID_BYTES_MAX];
    bytes_put_u64(age, (uint64_t)record->at);
    memcpy(age + OPERATION_AGE_HEADER_BYTES, id.bytes, id.size);
    key = key_operation_age(number);
    return txn_put(txn, TABLE_OPERATIONS_BY_AGE, &key,
                   slice(age, OPERATION_AGE_HEADER_BYTES + id.size));
}

Error operation_put(Txn *txn, Slice operation_id, Hash request_hash, Slice reply)
{
    OperationRecord record = {operation_id, request_hash, reply, txn->state.time.now_ms};
    Error error = operation_record_put(txn, &record);
    return error ? error : operation_prune(txn);
}
