// Check of the records next to messages: memories, calls, todos and originals; and of operations.

#include "base/hash.h"
#include "base/limits.h"
#include "store/check_pass.h"
#include "store/message.h"
#include "store/operation.h"
#include "store/todo.h"

static void check_ids(Check *check, StoreTable table, Slice key, const char *session_id,
                      const char *id)
{
    if (check_id_is(session_id, key_id_at(key, 0)) &&
        (!id || check_id_is(id, key_id_at(key, ULID_BYTES)))) {
        return;
    }
    check_damage(check, DAMAGE_MISPLACED, table, key, "it says it is '%s' of session '%s'",
                 id ? id : "", session_id);
}

static Error check_memory(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    Memory *memory;
    Error error = check_decode(check, &memory__descriptor, TABLE_MEMORIES, key, bytes, &memory);
    if (error || !memory) return error;
    check_ids(check, TABLE_MEMORIES, key, memory->session_id, memory->id);
    return ERROR_NONE;
}

static Error check_call(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    CallRecord *call;
    Error error = check_decode(check, &call_record__descriptor, TABLE_CALLS, key, bytes, &call);
    if (error || !call) return error;
    check_ids(check, TABLE_CALLS, key, call->session_id, call->id);
    if (!call->external) return ERROR_NONE;
    Hash hash = hash_pair(slice_of(call->external->source), slice_of(call->external->id));
    Key entry = key_session_index(LISTING_CALL_EXTERNAL, hash, key_id_at(key, 0));
    Slice value = {NULL, 0};
    bool found;
    error = check_row(check, TABLE_SESSION_INDEX, &entry, &found, &value);
    if (error) return error;
    if (!found || value.size != ULID_BYTES ||
        !ulid_equal(key_id_at(value, 0), key_id_at(key, ULID_BYTES))) {
        check_damage(check, DAMAGE_CALL, TABLE_CALLS, key,
                     "session_index does not lead from its external ID to it");
    }
    return ERROR_NONE;
}

static Error check_todos(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    Todos *todos;
    Error error = check_decode(check, &todos__descriptor, TABLE_TODOS, key, bytes, &todos);
    if (error || !todos) return error;
    check_ids(check, TABLE_TODOS, key, todos->session_id, NULL);
    TodoSummary anew = todo_summarize(todos->items, todos->n_items);
    const TodoSummary *said = todos->summary;
    if (!said || said->total != anew.total || said->incomplete != anew.incomplete ||
        said->in_progress != anew.in_progress || said->completed != anew.completed ||
        said->cancelled != anew.cancelled) {
        check_damage(check, DAMAGE_TODOS, TABLE_TODOS, key, "the summary does not match the items");
    }
    return ERROR_NONE;
}

static Error check_original(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    (void)bytes; // in a foreign format
    SessionState state;
    Error error = check_session_state(check, key_id_at(key, 0), &state);
    if (error || !state.is_live) return error;
    Key record_key = key_of_ids(key_id_at(key, 0), key_id_at(key, ULID_BYTES));
    Key first = key_with_chunk(&record_key, 0);
    bool found;
    Slice chunk;
    error = check_row(check, TABLE_MESSAGES, &first, &found, &chunk);
    if (error) return error;
    if (!found) {
        check_damage(check, DAMAGE_ORIGINAL, TABLE_ORIGINALS, key,
                     "the message that it names does not exist");
        return ERROR_NONE;
    }
    MessageHeader header;
    error = message_header_decode(&check->txn, chunk, &header);
    if (error) return ERROR_NONE; // check_log reports it
    if (header.is_purged) {
        check_damage(check, DAMAGE_ORIGINAL, TABLE_ORIGINALS, key, "the message was purged");
    }
    return ERROR_NONE;
}

Error check_side_records(Check *check)
{
    Slice all = {NULL, 0};
    Error error = check_each(check, TABLE_MEMORIES, all, check_memory, NULL);
    if (!error) error = check_each(check, TABLE_CALLS, all, check_call, NULL);
    if (!error) error = check_each(check, TABLE_TODOS, all, check_todos, NULL);
    if (!error) error = check_each(check, TABLE_ORIGINALS, all, check_original, NULL);
    return error;
}

// `key` is the ID of the operation and a 0.
static Error check_operation(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    if (bytes.size < OPERATION_HEADER_BYTES) {
        check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS, key,
                     "it is shorter than its header");
        return ERROR_NONE;
    }
    Key age_key = key_operation_age(bytes_get_u64(bytes.bytes + HASH_BYTES));
    Slice operation_id = {key.bytes, key.size - 1}, row;
    bool found;
    Error error = check_row(check, TABLE_OPERATIONS_BY_AGE, &age_key, &found, &row);
    if (error) return error;
    if (found && row.size >= OPERATION_AGE_HEADER_BYTES &&
        slice_equal(slice_skip(row, OPERATION_AGE_HEADER_BYTES), operation_id)) {
        return ERROR_NONE;
    }
    check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS, key,
                 "operations_by_age does not lead to it");
    return ERROR_NONE;
}

// What the walk over operations_by_age remembers.
typedef struct AgeWalk {
    uint64_t next;   // the number to expect
    int64_t last_at; // the store time of the row before
} AgeWalk;

// Returns whether an operation exists that has this number.
static Error has_operation(Check *check, Slice operation_id, uint64_t number, bool *out)
{
    *out = false;
    if (operation_id.size == 0 || operation_id.size > OPERATION_ID_BYTES_MAX) return ERROR_NONE;
    Key record_key = key_operation(operation_id);
    Key first = key_with_chunk(&record_key, 0);
    Slice value;
    bool found;
    Error error = check_row(check, TABLE_OPERATIONS, &first, &found, &value);
    if (error || !found || value.size < OPERATION_HEADER_BYTES) return error;
    *out = bytes_get_u64(value.bytes + HASH_BYTES) == number;
    return ERROR_NONE;
}

static Error check_age_row(Check *check, void *context, Slice key, Slice bytes)
{
    AgeWalk *walk = context;
    uint64_t number = bytes_get_u64(key.bytes);
    if (number != walk->next || number > check->state.last_operation) {
        check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS_BY_AGE, key,
                     "it is not the next number, %llu", (unsigned long long)walk->next);
    }
    walk->next = number + 1;
    bool is_right = false;
    if (bytes.size >= OPERATION_AGE_HEADER_BYTES) {
        Slice operation_id = slice_skip(bytes, OPERATION_AGE_HEADER_BYTES);
        Error error = has_operation(check, operation_id, number, &is_right);
        if (error) return error;
        int64_t at = (int64_t)bytes_get_u64(bytes.bytes);
        if (at < walk->last_at || at > check->state.time.now_ms) {
            check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS_BY_AGE, key,
                         "its store time is before that of the row before it, or after the "
                         "store's");
        }
        walk->last_at = at;
    }
    if (is_right) return ERROR_NONE;
    check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS_BY_AGE, key,
                 "it leads to no operation or to one with another date");
    return ERROR_NONE;
}

Error check_operations(Check *check)
{
    Slice all = {NULL, 0};
    AgeWalk walk = {.next = check->state.first_operation};
    Error error = check_each(check, TABLE_OPERATIONS, all, check_operation, NULL);
    if (!error) error = check_each(check, TABLE_OPERATIONS_BY_AGE, all, check_age_row, &walk);
    if (error || walk.next > check->state.last_operation) return error;
    Key key = key_operation_age(walk.next);
    check_damage(check, DAMAGE_OPERATION, TABLE_OPERATIONS_BY_AGE, key_slice(&key),
                 "it is missing, and so are those after it");
    return ERROR_NONE;
}
