// Check of a session's log: reads its entries in order, merged with its origins.
//
// IDs rise through both, so one walk can replay the life of the session. The walk keeps the current
// end of the history. An origin moves that end to its target. An entry must name the end as its
// parent, and then becomes the end. The end after the last row must be the session's head_id.

#include "store/check_pass.h"
#include "store/message.h"

typedef struct LogWalk {
    Ulid session;
    SessionState state;
    CheckedLog *log;
    KvCursor *origins;
    KvRow origin; // the next origin
    bool has_origin;
} LogWalk;

static Error next_origin(Check *check, LogWalk *walk, bool is_first)
{
    Error error = is_first ? kv_seek(walk->origins, ulid_slice(&walk->session), &walk->has_origin,
                                     &walk->origin)
                           : kv_next(walk->origins, &walk->has_origin, &walk->origin);
    error = check_skip_bad(check, walk->origins, error, &walk->has_origin, &walk->origin);
    if (error || !walk->has_origin) return error;
    walk->has_origin = slice_starts_with(walk->origin.key, ulid_slice(&walk->session));
    return ERROR_NONE;
}

// Applies the origins up to `through`. Skips damaged ones, which check_origins reports.
static Error follow_origins(Check *check, LogWalk *walk, Ulid through)
{
    while (walk->has_origin) {
        bool is_valid = check_key_is_valid(TABLE_ORIGINS, walk->origin.key) &&
                        walk->origin.value.size == 2 * ULID_BYTES;
        if (is_valid) {
            if (ulid_compare(key_id_at(walk->origin.key, ULID_BYTES), through) > 0) break;
            walk->log->head = key_id_at(walk->origin.value, ULID_BYTES);
        }
        Error error = next_origin(check, walk, /* is_first= */ false);
        if (error) return error;
    }
    return ERROR_NONE;
}

static void add_usage(CheckedLog *log, const Usage *usage, bool is_deleted)
{
    Totals totals = message_usage_totals(usage);
    const int64_t numbers[] = {totals.input_tokens, totals.output_tokens, totals.cache_read_tokens,
                               totals.cache_write_tokens, totals.cost_nano_usd};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        __int128 number = numbers[i];
        log->magnitudes[i] += number < 0 ? -number : number;
        if (!is_deleted) log->sums[i] += number;
    }
}

static void check_header(Check *check, Slice key, const MessageHeader *header,
                         const Message *message)
{
    if (header->is_deleted != (message->deleted_at != 0)) {
        check_damage(check, DAMAGE_MESSAGE_HEAD, TABLE_MESSAGES, key,
                     "only one of header and message says that it is deleted");
    }
    if (header->kind != message->kind || header->role != message->role ||
        header->status != message->status) {
        check_damage(
            check, DAMAGE_MESSAGE_HEAD, TABLE_MESSAGES, key,
            "kind, role and status are %d, %d, %d in its header, but %d, %d, %d in the message",
            (int)header->kind, (int)header->role, (int)header->status, (int)message->kind,
            (int)message->role, (int)message->status);
    }
    Ulid call;
    if (header->has_call_id != ulid_parse(slice_of(message->call_id), &call)) {
        check_damage(check, DAMAGE_MESSAGE_HEAD, TABLE_MESSAGES, key,
                     "only one of header and message says that it has a call ID");
    }
    if (header->is_purged && (message->n_parts > 0 || *message->text || message->external)) {
        check_damage(check, DAMAGE_MESSAGE_HEAD, TABLE_MESSAGES, key, "it is purged but not empty");
    }
}

static void check_place(Check *check, Slice key, const LogWalk *walk, const Message *message)
{
    if (!check_id_is(message->id, key_id_at(key, ULID_BYTES)) ||
        !check_id_is(message->session_id, walk->session)) {
        check_damage(check, DAMAGE_MISPLACED, TABLE_MESSAGES, key,
                     "it says it is message '%s' of session '%s'", message->id,
                     message->session_id);
    }
    if (!check_id_is(message->parent_id, walk->log->head)) {
        char text[ULID_TEXT_BYTES + 1];
        ulid_format(walk->log->head, text);
        check_damage(check, DAMAGE_MESSAGE_PARENT, TABLE_MESSAGES, key,
                     "parent_id is '%s', but the entry before it is %s", message->parent_id, text);
    }
    if (message->sequence != walk->log->entry_count_all) {
        check_damage(check, DAMAGE_MESSAGE_SEQUENCE, TABLE_MESSAGES, key,
                     "sequence is %llu, but its place in the log is %llu",
                     (unsigned long long)message->sequence,
                     (unsigned long long)walk->log->entry_count_all);
    }
}

static void count_entry(CheckedLog *log, const Message *message)
{
    bool is_deleted = message->deleted_at != 0;
    if (!is_deleted) log->entry_count++;
    if (!is_deleted && message->kind == MESSAGE_KIND_CONVERSATION) log->message_count++;
    if (message->created_at > log->newest_at) log->newest_at = message->created_at;
    if (message->usage) add_usage(log, message->usage, is_deleted);
}

static Error check_entry(Check *check, LogWalk *walk, Slice key, Slice bytes)
{
    MessageHeader header;
    Error error = message_header_decode(&check->txn, bytes, &header);
    if (error) return check_survive(check, error, TABLE_MESSAGES, key);
    if (bytes.size != MESSAGE_HEADER_BYTES + (size_t)header.bytes) {
        check_damage(check, DAMAGE_MESSAGE_HEAD, TABLE_MESSAGES, key,
                     "it has %zu bytes, but its header says %zu", bytes.size,
                     MESSAGE_HEADER_BYTES + (size_t)header.bytes);
        return ERROR_NONE;
    }
    Message *message;
    error = check_decode(check, &message__descriptor, TABLE_MESSAGES, key,
                         slice_skip(bytes, MESSAGE_HEADER_BYTES), &message);
    if (error || !message) return error;
    check_header(check, key, &header, message);
    check_place(check, key, walk, message);
    count_entry(walk->log, message);
    return check_entry_indexes(check, key, walk->state, message,
                               slice_skip(bytes, MESSAGE_HEADER_BYTES), header.is_purged);
}

static Error check_log_record(Check *check, void *context, Slice key, Slice bytes)
{
    LogWalk *walk = context;
    Ulid id = key_id_at(key, ULID_BYTES);
    check->result->messages++;
    Error error = follow_origins(check, walk, id);
    if (!error) error = check_entry(check, walk, key, bytes);
    walk->log->entry_count_all++;
    walk->log->head = walk->log->last_entry = id;
    return error;
}

Error check_log(Check *check, Ulid session, SessionState state, CheckedLog *out)
{
    *out = (CheckedLog){.newest_at = INT64_MIN};
    CLEANUP(kv_cursor_closep) KvCursor *origins = NULL;
    Error error = kv_cursor_open(check->txn.kv, TABLE_ORIGINS, &origins);
    if (error) return error;
    LogWalk walk = {.session = session, .state = state, .log = out, .origins = origins};
    error = next_origin(check, &walk, /* is_first= */ true);
    if (!error) {
        error = check_each(check, TABLE_MESSAGES, ulid_slice(&session), check_log_record, &walk);
    }
    return error ? error : follow_origins(check, &walk, ULID_MAX);
}
