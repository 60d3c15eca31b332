// Sessions: reads and writes the two rows, without decoding where possible.

#include "store/session.h"

#include "base/limits.h"
#include "store/record.h"
#include "text/utf8.h"
#include "wire/wire.h"

static Error not_found(Txn *txn, Ulid id)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(id, text);
    return error_say(txn->detail, ERROR_SESSION_NOT_FOUND, "there is no session %s", text);
}

static Error row_get(Txn *txn, Ulid id, uint8_t row, Slice *out)
{
    Key key = key_session(id, row);
    bool found;
    if (store_leaves_out(txn->store, id)) return store_refuse_left_out(id, txn->detail);
    Error error = record_get(txn, TABLE_SESSIONS, &key, &found, out);
    if (error || found) return error;
    return not_found(txn, id);
}

Error session_brief(Txn *txn, Ulid id, SessionBrief *out)
{
    Key key = key_session(id, SESSION_ROW_SETTINGS);
    Slice rest;
    bool found;
    if (store_leaves_out(txn->store, id)) return store_refuse_left_out(id, txn->detail);
    Error error = record_get_first(txn, TABLE_SESSIONS, &key, &found, &rest);
    if (error) return error;
    if (!found) return not_found(txn, id);

    *out = (SessionBrief){.kind = SESSION_KIND_UNSPECIFIED};
    WireField field;
    while (wire_next(&rest, &field) && field.number <= FIELD_SESSION_PARENT_ID) {
        if (field.number == FIELD_SESSION_KIND) out->kind = (SessionKind)field.value;
        if (field.number == FIELD_SESSION_DELETED_AT) out->is_deleted = field.value != 0;
        if (field.number == FIELD_SESSION_ARCHIVED_AT) out->is_archived = field.value != 0;
        if (field.number == FIELD_SESSION_PARENT_ID && !ulid_parse(field.bytes, &out->parent)) {
            return error_say(txn->detail, ERROR_CORRUPT, "the parent_id of a session is not an ID");
        }
    }
    return ERROR_NONE;
}

static Error session_row(Txn *txn, Ulid id, uint8_t row, Session **out)
{
    Slice bytes;
    Error error = row_get(txn, id, row, &bytes);
    if (error) return error;
    return txn_decode(txn, &session__descriptor, bytes, out);
}

Error session_settings(Txn *txn, Ulid id, Session **out)
{
    return session_row(txn, id, SESSION_ROW_SETTINGS, out);
}

Error session_head(Txn *txn, Ulid id, Session **out)
{
    return session_row(txn, id, SESSION_ROW_HEAD, out);
}

Error session_require_writable(Txn *txn, Ulid id)
{
    SessionBrief brief;
    Error error = session_brief(txn, id, &brief);
    if (error) return error;
    if (brief.is_deleted) return ERROR_SESSION_DELETED;
    return brief.is_archived ? ERROR_SESSION_ARCHIVED : ERROR_NONE;
}

Error session_head_for_write(Txn *txn, Ulid id, Session **out)
{
    Error error = session_require_writable(txn, id);
    return error ? error : session_head(txn, id, out);
}

static Error session_put_row(Txn *txn, Ulid id, uint8_t row, const Session *session)
{
    Slice bytes;
    Error error = txn_encode(txn->arena, &session->base, 0, &bytes);
    if (error) return error;
    Key key = key_session(id, row);
    if (row == SESSION_ROW_HEAD && bytes.size < VALUE_BYTES_MAX) {
        // The limits of its fields keep a head within one chunk, so there are no later chunks to
        // delete.
        return record_insert(txn, TABLE_SESSIONS, &key, bytes);
    }
    return record_put(txn, TABLE_SESSIONS, &key, bytes);
}

Error session_put_settings(Txn *txn, Ulid id, const Session *settings)
{
    return session_put_row(txn, id, SESSION_ROW_SETTINGS, settings);
}

Error session_put_head(Txn *txn, Ulid id, const Session *head)
{
    return session_put_row(txn, id, SESSION_ROW_HEAD, head);
}

Error session_take_name(Txn *txn, Ulid id, Session *head, const char *name)
{
    Slice title = utf8_trim(utf8_cut(utf8_trim(slice_of(name)), TITLE_BYTES_MAX));
    Session *settings;
    Error error = session_settings(txn, id, &settings);
    if (error || slice_equal(title, slice_of(settings->title))) return error;
    settings->title = arena_string(txn->arena, title);
    if (!settings->title) return arena_error(txn->arena);
    head->updated_at = txn->now_ms;
    return session_put_settings(txn, id, settings);
}

SessionStatus session_status_now(SessionStatus status, int64_t status_until, int64_t now_ms)
{
    if (status == SESSION_STATUS_UNSPECIFIED) return SESSION_STATUS_IDLE;
    if (status_until != 0 && status_until <= now_ms) return SESSION_STATUS_IDLE;
    return status;
}

// Returns the settings up to the first field that listings omit. Fields are stored in order.
static Slice settings_brief(Slice settings)
{
    Slice rest = settings;
    WireField field;
    while (rest.size > 0) {
        const uint8_t *before = rest.bytes;
        if (!wire_next(&rest, &field) || field.number >= SESSION_BRIEF_END) {
            return (Slice){settings.bytes, (size_t)(before - settings.bytes)};
        }
    }
    return settings;
}

// Returns whether the head holds a status whose time has passed.
static bool head_status_is_over(Slice head, int64_t now_ms)
{
    int64_t status = 0, status_until = 0;
    WireField field;
    while (wire_next(&head, &field) && field.number <= FIELD_SESSION_STATUS_UNTIL) {
        if (field.number == FIELD_SESSION_STATUS) status = (int64_t)field.value;
        if (field.number == FIELD_SESSION_STATUS_UNTIL) status_until = (int64_t)field.value;
    }
    return status != (int64_t)session_status_now((SessionStatus)status, status_until, now_ms);
}

Error session_rows_append_to(const Txn *txn, Slice settings, Slice head, bool is_brief,
                             uint32_t field, Buffer *out)
{
    if (is_brief) settings = settings_brief(settings);

    // In protobuf the last value of a field counts, so append the current status at the end.
    uint8_t patch[2 * (WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX)];
    size_t patch_size = 0;
    if (head_status_is_over(head, txn->now_ms)) {
        patch_size = wire_put_varint_field(patch, FIELD_SESSION_STATUS, SESSION_STATUS_IDLE);
        patch_size += wire_put_varint_field(patch + patch_size, FIELD_SESSION_STATUS_UNTIL, 0);
    }
    Error error = wire_append_header(out, field, settings.size + head.size + patch_size);
    if (!error) error = buffer_append(out, settings);
    if (!error) error = buffer_append(out, head);
    if (!error) error = buffer_append(out, slice(patch, patch_size));
    return error;
}

Error session_append_to(Txn *txn, Ulid id, bool is_brief, uint32_t field, Buffer *out)
{
    Slice settings, head;
    Error error = row_get(txn, id, SESSION_ROW_SETTINGS, &settings);
    if (error) return error;
    error = row_get(txn, id, SESSION_ROW_HEAD, &head);
    if (error) return error;
    return session_rows_append_to(txn, settings, head, is_brief, field, out);
}
