// Originals. Only the bytes are stored; the key says which message they belong to.

#include "store/original.h"

#include "base/limits.h"
#include "store/message.h"
#include "store/record.h"
#include "wire/wire.h"

Error original_put(Txn *txn, Ulid message, Slice content, Receipt *out_receipt)
{
    Ulid session;
    Error error = message_owner(txn, message, &session);
    if (!error) error = session_require_writable(txn, session);
    MessageHeader header;
    Slice first;
    if (!error) error = message_first(txn, session, message, &header, &first);
    if (error) return error;
    if (header.is_purged) {
        return error_say(txn->detail, ERROR_MESSAGE_SEALED,
                         "the message was purged, so it cannot have an original");
    }
    error = message_receipt(txn, first, out_receipt);
    if (error) return error;
    Key key = key_of_ids(session, message);
    return record_put(txn, TABLE_ORIGINALS, &key, content);
}

Error original_put_new(Txn *txn, Ulid session, Ulid message, Slice content)
{
    Key key = key_of_ids(session, message);
    return record_insert(txn, TABLE_ORIGINALS, &key, content);
}

// Returns the size of an encoded Original.
static size_t record_size(size_t content_size)
{
    return wire_bytes_field_size(FIELD_ORIGINAL_MESSAGE_ID, ULID_TEXT_BYTES) +
           wire_bytes_field_size(FIELD_ORIGINAL_CONTENT, content_size);
}

static Error append_original(Buffer *out, uint32_t field, Ulid message, Slice content)
{
    char id[ULID_TEXT_BYTES + 1];
    ulid_format(message, id);
    Error error = wire_append_header(out, field, record_size(content.size));
    if (!error) {
        error = wire_append_bytes(out, FIELD_ORIGINAL_MESSAGE_ID, slice(id, ULID_TEXT_BYTES));
    }
    if (!error) error = wire_append_bytes(out, FIELD_ORIGINAL_CONTENT, content);
    return error;
}

Error original_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit, size_t page_bytes,
                           uint32_t field, Buffer *out, Ulid *out_last)
{
    *out_last = ULID_ZERO;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_ORIGINALS, &cursor);
    for (uint32_t count = 0; !error; count++) {
        Key key = key_of_ids(session, ulid_next(after));
        KvRow row;
        bool found;
        error = kv_seek(cursor, key_slice(&key), &found, &row);
        if (error || !found || !slice_starts_with(row.key, ulid_slice(&session))) return error;
        if (row.key.size != KEY_MESSAGE_BYTES) {
            return error_say(txn->detail, ERROR_CORRUPT,
                             "the key of an original has the wrong size");
        }
        Ulid message = key_id_at(row.key, ULID_BYTES);
        if (count == limit || count == SCANNED_RECORDS_MAX) {
            *out_last = after;
            return ERROR_NONE;
        }
        Slice content;
        error = record_read_on(txn, cursor, &row, &content);
        if (error) return error;
        size_t size = wire_bytes_field_size(field, record_size(content.size));
        if (count > 0 && buffer_size(out) + size > page_bytes) {
            *out_last = after;
            return ERROR_NONE;
        }
        error = append_original(out, field, message, content);
        after = message;
    }
    return error;
}
