// Call records: their rows, the index of their external IDs, and the fields of the head record.

#include "store/call_record.h"

#include "base/limits.h"
#include "store/event.h"
#include "store/message.h"
#include "store/record.h"
#include "store/session.h"
#include "store/totals.h"
#include "wire/wire.h"

enum { CALL_KEY_BYTES = 2 * ULID_BYTES + 2 };

static Error call_get(Txn *txn, Ulid session, Ulid id, CallRecord **out)
{
    *out = NULL;
    Key key = key_of_ids(session, id);
    Slice bytes;
    bool found;
    Error error = record_get(txn, TABLE_CALLS, &key, &found, &bytes);
    if (error || !found) return error;
    return txn_decode(txn, &call_record__descriptor, bytes, out);
}

static Hash external_hash(const External *external)
{
    return hash_pair(slice_of(external->source), slice_of(external->id));
}

// Finds out whether an index row names a call that exists and has this external ID. It does not if
// the session is being purged or if only the hash is the same.
static Error external_is_held(Txn *txn, const KvRow *row, const External *external, bool *out)
{
    *out = false;
    if (row->key.size != KEY_SESSION_INDEX_BYTES || row->value.size != ULID_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the index row of a call's external ID is damaged");
    }
    Ulid session = key_id_at(row->key, 1 + HASH_BYTES);
    SessionBrief brief;
    CallRecord *call;
    Error error = session_brief(txn, session, &brief);
    if (error == ERROR_SESSION_NOT_FOUND) return ERROR_NONE;
    if (!error) error = call_get(txn, session, key_id_at(row->value, 0), &call);
    if (error) return error;
    *out = call && call->external && strcmp(call->external->source, external->source) == 0 &&
           strcmp(call->external->id, external->id) == 0;
    return ERROR_NONE;
}

Error call_external_check(Txn *txn, const NewCall *call)
{
    const External *external = call->external;
    if (!external) return ERROR_NONE;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_SESSION_INDEX, &cursor);
    if (error) return error;
    Key key = key_session_index(LISTING_CALL_EXTERNAL, external_hash(external), ULID_ZERO);
    Slice prefix = {key.bytes, KEY_SESSION_INDEX_BYTES - ULID_BYTES};
    KvRow row;
    bool found, is_held;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row);
         !error && found && slice_starts_with(row.key, prefix);
         error = kv_next(cursor, &found, &row)) {
        error = external_is_held(txn, &row, external, &is_held);
        if (error) return error;
        if (!is_held) continue;
        char session[ULID_TEXT_BYTES + 1], id[ULID_TEXT_BYTES + 1];
        ulid_format(key_id_at(row.key, 1 + HASH_BYTES), session);
        ulid_format(key_id_at(row.value, 0), id);
        return error_say(txn->detail, ERROR_EXTERNAL_TAKEN,
                         "call %s of session %s already has external ID '%s' from source '%s'", id,
                         session, external->id, external->source);
    }
    if (txn->detail)
        txn->detail->text[0] = '\0'; // discards the detail of a session that was not found
    return error;
}

Error call_external_drop(Txn *txn, Ulid session, Ulid id)
{
    CallRecord *call;
    Error error = call_get(txn, session, id, &call);
    if (error || !call || !call->external) return error;
    Key key = key_session_index(LISTING_CALL_EXTERNAL, external_hash(call->external), session);
    return txn_delete(txn, TABLE_SESSION_INDEX, &key);
}

Error call_record_last(Txn *txn, const CallRecord *call, LastCall **out)
{
    LastCall *last = arena_new(txn->arena, LastCall);
    if (!last) return arena_error(txn->arena);
    tine__v1__last_call__init(last);
    last->id = call->id;
    last->request_id = call->request_id;
    last->model = call->resolved ? call->resolved : call->requested;
    last->cost_nano_usd = call->usage ? call->usage->cost_nano_usd : 0;
    last->created_at = call->created_at;
    *out = last;
    return ERROR_NONE;
}

static Error call_fill(Txn *txn, const CallRecordPut *put, Ulid id, CallRecord *call)
{
    const NewCall *new_call = put->call;
    call->id = txn_id_text(txn, id);
    call->session_id = txn_id_text(txn, put->session);
    if (!call->id || !call->session_id) return arena_error(txn->arena);
    call->request_id = new_call->request_id;
    call->requested = new_call->requested;
    call->resolved = new_call->resolved;
    call->provider_kind = new_call->provider_kind;
    call->usage = new_call->usage;
    call->created_at = new_call->created_at ? new_call->created_at : txn->now_ms;
    call->duration_ms = new_call->duration_ms;
    call->finish_reason = new_call->finish_reason;
    call->error = new_call->error;
    call->external = new_call->external;
    call->data_json = new_call->data_json;
    return ERROR_NONE;
}

static Error call_put_rows(Txn *txn, Ulid session, Ulid id, const CallRecord *call)
{
    Slice bytes;
    Error error = txn_encode(txn->arena, &call->base, 0, &bytes);
    if (error) return error;
    Key key = key_of_ids(session, id);
    error = record_insert(txn, TABLE_CALLS, &key, bytes);
    if (error || !call->external) return error;
    key = key_session_index(LISTING_CALL_EXTERNAL, external_hash(call->external), session);
    return txn_put(txn, TABLE_SESSION_INDEX, &key, ulid_slice(&id));
}

static Error call_event(Txn *txn, Ulid session, Session *head, const char *type,
                        const CallReceipt *receipt)
{
    Event event = EVENT__INIT;
    event.type = (char *)(uintptr_t)type;
    event.record_id = receipt->id;
    event.totals = receipt->totals;
    event.n_totals = receipt->n_totals;
    Error error = event_put(txn, session, head, &event);
    if (error) return error;
    return session_put_head(txn, session, head);
}

static void receipt_fill(const CallRecord *call, CallReceipt *receipt)
{
    receipt->id = call->id;
    receipt->session_id = call->session_id;
    receipt->created_at = call->created_at;
}

Error call_record_put(Txn *txn, const CallRecordPut *put, Ulid id, CallReceipt *out_receipt)
{
    Session *head;
    CallRecord call = CALL_RECORD__INIT;
    Error error = session_head(txn, put->session, &head);
    if (!error) error = call_fill(txn, put, id, &call);
    if (!error) error = call_record_last(txn, &call, &head->last_call);
    if (!error) error = call_put_rows(txn, put->session, id, &call);
    if (error) return error;
    head->call_count++;
    receipt_fill(&call, out_receipt);
    if (put->propagate_usage && call.usage) {
        Totals delta = message_usage_totals(call.usage);
        error = totals_propagate(txn, put->session, head, &delta, &out_receipt->totals,
                                 &out_receipt->n_totals);
        if (error) return error;
    }
    return call_event(txn, put->session, head, EVENT_CALL_RECORDED, out_receipt);
}

// Finds the last call of a session before `before`.
static Error step_back(KvCursor *cursor, Ulid session, Ulid before, bool *out_found, Ulid *out_id)
{
    Key record_key = key_of_ids(session, before);
    Key key = key_with_chunk(&record_key, 0);
    KvRow row;
    Error error = kv_seek_before(cursor, key_slice(&key), out_found, &row);
    if (error || !*out_found) return error;
    *out_found = slice_starts_with(row.key, ulid_slice(&session));
    if (!*out_found) return ERROR_NONE;
    if (row.key.size != CALL_KEY_BYTES) return kv_refuse_key(cursor, row.key);
    *out_id = key_id_at(row.key, ULID_BYTES);
    return ERROR_NONE;
}

Error call_record_newest(Txn *txn, Ulid session, CallRecord **out)
{
    *out = NULL;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_CALLS, &cursor);
    bool found = false;
    Ulid id = ULID_ZERO;
    if (!error) error = step_back(cursor, session, ULID_MAX, &found, &id);
    if (error || !found) return error;
    return call_get(txn, session, id, out);
}

// Returns whether a call has this request ID, which is in its first chunk, after two IDs.
static bool call_has_request_id(Slice first, const char *request_id)
{
    WireField field;
    while (wire_next(&first, &field) && field.number <= FIELD_CALL_RECORD_REQUEST_ID) {
        if (field.number != FIELD_CALL_RECORD_REQUEST_ID) continue;
        return slice_equal(field.bytes, slice_of(request_id));
    }
    return false;
}

Error call_record_is_known(Txn *txn, Ulid session, const NewCall *call, bool *out)
{
    *out = true;
    if (call->external) {
        Error error = call_external_check(txn, call);
        *out = error == ERROR_EXTERNAL_TAKEN;
        if (*out && txn->detail) txn->detail->text[0] = '\0';
        return *out ? ERROR_NONE : error;
    }
    if (!*call->request_id) return ERROR_NONE;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_CALLS, &cursor);
    Ulid id = ULID_MAX;
    for (size_t i = 0; !error && i < REPLAY_CALL_COUNT_MAX; i++) {
        bool found;
        Slice first = {NULL, 0};
        error = step_back(cursor, session, id, &found, &id);
        if (error || !found) break;
        Key key = key_of_ids(session, id);
        error = record_get_first(txn, TABLE_CALLS, &key, &found, &first);
        if (!error && call_has_request_id(first, call->request_id)) return ERROR_NONE;
    }
    *out = false;
    return error;
}

Error call_record_delete(Txn *txn, Ulid session, Ulid id, CallReceipt *out_receipt)
{
    Session *head;
    CallRecord *call, *newest;
    Error error = session_head(txn, session, &head);
    if (!error) error = call_get(txn, session, id, &call);
    if (error) return error;
    if (!call) {
        char text[ULID_TEXT_BYTES + 1];
        ulid_format(id, text);
        return error_say(txn->detail, ERROR_CALL_NOT_FOUND, "the session has no call %s", text);
    }
    Key key = key_of_ids(session, id);
    error = call_external_drop(txn, session, id);
    if (!error) error = record_delete(txn, TABLE_CALLS, &key, NULL);
    if (!error) error = call_record_newest(txn, session, &newest);
    if (error) return error;
    head->call_count--;
    head->last_call = NULL;
    if (newest) error = call_record_last(txn, newest, &head->last_call);
    if (error) return error;
    receipt_fill(call, out_receipt);
    return call_event(txn, session, head, EVENT_CALL_DELETED, out_receipt);
}

// Finds the first chunk of the next call after `after` in the order of the query.
static Error step(KvCursor *cursor, const CallQuery *query, Ulid after, bool *out_found,
                  KvRow *out_row)
{
    Ulid wanted = ulid_is_zero(after) ? ULID_ZERO : ulid_next(after);
    Error error = ERROR_NONE;
    if (query->is_newest_first) {
        Ulid before = ulid_is_zero(after) ? ULID_MAX : after;
        error = step_back(cursor, query->session, before, out_found, &wanted);
        if (error || !*out_found) return error;
    }
    Key record_key = key_of_ids(query->session, wanted);
    Key key = key_with_chunk(&record_key, 0);
    error = kv_seek(cursor, key_slice(&key), out_found, out_row);
    if (error || !*out_found) return error;
    *out_found = slice_starts_with(out_row->key, ulid_slice(&query->session));
    bool is_wrong = *out_found && out_row->key.size != CALL_KEY_BYTES;
    return is_wrong ? kv_refuse_key(cursor, out_row->key) : ERROR_NONE;
}

// Compares created_at, which is in the first chunk because the fields before it are short.
static bool call_is_wanted(const CallQuery *query, Slice bytes)
{
    WireField field;
    int64_t created_at = 0;
    while (wire_next(&bytes, &field) && field.number <= FIELD_CALL_RECORD_CREATED_AT) {
        if (field.number == FIELD_CALL_RECORD_CREATED_AT) created_at = (int64_t)field.value;
    }
    return (query->since == 0 || created_at >= query->since) &&
           (query->until == 0 || created_at < query->until);
}

Error call_record_append_page(Txn *txn, const CallQuery *query, uint32_t field, Buffer *out,
                              Ulid *out_last)
{
    *out_last = ULID_ZERO;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_CALLS, &cursor);
    Ulid after = query->after, id = ULID_ZERO;
    uint32_t count = 0;
    for (size_t scanned = 0; !error; scanned++) {
        KvRow row;
        Slice bytes = {NULL, 0};
        bool found;
        error = step(cursor, query, after, &found, &row);
        if (error || !found) return error;
        id = key_id_at(row.key, ULID_BYTES);
        bool is_wanted = call_is_wanted(query, row.value);
        if (is_wanted) error = record_read_on(txn, cursor, &row, &bytes);
        if (error) return error;
        size_t size = is_wanted ? wire_bytes_field_size(field, bytes.size) : 0;
        if (count == query->limit || scanned == SCANNED_RECORDS_MAX ||
            (count > 0 && buffer_size(out) + size > query->page_bytes)) {
            *out_last = after;
            return ERROR_NONE;
        }
        after = id;
        if (!is_wanted) continue;
        error = wire_append_bytes(out, field, bytes);
        count++;
    }
    return error;
}
