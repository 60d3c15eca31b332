// Log scans. The step to the next entry is one cursor movement if the cursor is on the last chunk
// of the current entry: the entry has one chunk, or all were read. Otherwise the step is a seek, so
// that a scan that skips a large entry never touches its bytes.

#include "store/message_scan.h"

#include "base/limits.h"
#include "store/planted.h"
#include "wire/wire.h"

Error message_scan_open(MessageScan *scan, Txn *txn)
{
    *scan = (MessageScan){.txn = txn};
    return kv_cursor_open(txn->kv, TABLE_MESSAGES, &scan->cursor);
}

void message_scan_close(MessageScan *scan)
{
    kv_cursor_close(scan->cursor);
    scan->cursor = NULL;
}

void message_scan_start(MessageScan *scan, const Segment *segment, bool is_newest_first)
{
    scan->segment = *segment;
    scan->is_newest_first = is_newest_first;
    scan->is_started = scan->is_read = false;
}

static bool row_is_one_chunk(const MessageRow *row)
{
    return row->header.bytes <= VALUE_BYTES_MAX - MESSAGE_HEADER_BYTES;
}

static bool is_on_last_chunk(const MessageScan *scan)
{
    return scan->is_started && (scan->is_read || row_is_one_chunk(&scan->row));
}

static Error step_forward(MessageScan *scan, bool *out_found, KvRow *out)
{
    if (is_on_last_chunk(scan)) {
        return kv_next(scan->cursor, out_found, out);
    }
    Ulid after = scan->is_started ? scan->row.id : scan->segment.after;
    Key record_key = key_of_ids(scan->segment.session, ulid_next(after));
    Key key = key_with_chunk(&record_key, 0);
    return kv_seek(scan->cursor, key_slice(&key), out_found, out);
}

static Error step_back(MessageScan *scan, bool *out_found, KvRow *out)
{
    Error error;
    if (scan->is_started && row_is_one_chunk(&scan->row)) {
        error = kv_previous(scan->cursor, out_found, out);
    } else {
        Ulid before = scan->is_started ? scan->row.id : ulid_next(scan->segment.through);
        Key record_key = key_of_ids(scan->segment.session, before);
        Key key = key_with_chunk(&record_key, 0);
        error = kv_seek_before(scan->cursor, key_slice(&key), out_found, out);
    }
    if (error || !*out_found || out->key.size != KEY_MESSAGE_BYTES) return error;

    // This may be the last chunk of a longer entry: go to its first.
    if (key_u16_at(out->key, 2 * ULID_BYTES) == 0) return ERROR_NONE;
    uint8_t first_key[KEY_MESSAGE_BYTES];
    memcpy(first_key, out->key.bytes, 2 * ULID_BYTES);
    memset(first_key + 2 * ULID_BYTES, 0, 2);
    return kv_seek(scan->cursor, slice(first_key, sizeof(first_key)), out_found, out);
}

static bool segment_holds(const Segment *segment, Slice key)
{
    Ulid id = key_id_at(key, ULID_BYTES);
    return memcmp(key.bytes, segment->session.bytes, ULID_BYTES) == 0 &&
           ulid_compare(id, segment->after) > 0 &&
           ulid_compare(id, segment->through) <= PLANTED(1, -1, 0);
}

Error message_scan_next(MessageScan *scan, bool *out_found, const MessageRow **out_row)
{
    KvRow row;
    Error error = scan->is_newest_first ? step_back(scan, out_found, &row)
                                        : step_forward(scan, out_found, &row);
    scan->is_started = true;
    scan->is_read = false;
    if (error || !*out_found) return error;
    if (row.key.size != KEY_MESSAGE_BYTES) {
        return error_say(scan->txn->detail, ERROR_CORRUPT,
                         "the key of a message has the wrong size");
    }
    if (!segment_holds(&scan->segment, row.key)) {
        *out_found = false;
        return ERROR_NONE;
    }
    if (key_u16_at(row.key, 2 * ULID_BYTES) != 0) {
        return error_say(scan->txn->detail, ERROR_CORRUPT,
                         "the first chunk of a message is missing");
    }
    scan->row.session = scan->segment.session;
    scan->row.id = key_id_at(row.key, ULID_BYTES);
    if (row.value.size < MESSAGE_HEADER_BYTES) {
        return error_say(scan->txn->detail, ERROR_CORRUPT, "a message is shorter than its header");
    }
    message_header_unpack(row.value.bytes, &scan->row.header);
    scan->row.first = slice_skip(row.value, MESSAGE_HEADER_BYTES);
    size_t patch_size = 0;
    if (scan->row.header.has_call_id) {
        error = message_call_patch(scan->txn, scan->row.session, &scan->row.header, scan->row.first,
                                   scan->patch, &patch_size);
        if (error) return error;
    }
    scan->row.reply_bytes = scan->row.header.bytes + patch_size;
    *out_row = &scan->row;
    return ERROR_NONE;
}

Error message_scan_append_to(MessageScan *scan, uint32_t field, Buffer *out)
{
    size_t total = scan->row.header.bytes;
    size_t patch_size = scan->row.reply_bytes - total;
    size_t room = WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX + scan->row.reply_bytes;
    uint8_t *bytes;
    Error error = buffer_reserve(out, room, &bytes);
    if (error) return error;
    size_t size = wire_put_tag(bytes, field, WIRE_BYTES);
    size += wire_put_varint(bytes + size, scan->row.reply_bytes);

    Slice chunk = scan->row.first;
    size_t left = total;
    for (;;) {
        if (chunk.size > left) break;
        memcpy(bytes + size, chunk.bytes, chunk.size);
        size += chunk.size;
        left -= chunk.size;
        if (left == 0) {
            memcpy(bytes + size, scan->patch, patch_size);
            buffer_grow(out, size + patch_size);
            scan->is_read = true;
            return ERROR_NONE;
        }
        KvRow row;
        bool found;
        error = kv_next(scan->cursor, &found, &row);
        if (error) return error;
        if (!found || row.key.size != KEY_MESSAGE_BYTES || row.value.size == 0 ||
            memcmp(row.key.bytes + ULID_BYTES, scan->row.id.bytes, ULID_BYTES) != 0) {
            break;
        }
        chunk = row.value;
    }
    return error_say(scan->txn->detail, ERROR_CORRUPT,
                     "the chunks of a message do not add up to its size");
}

Error message_scan_pieces(MessageScan *scan, const Slice **out_pieces, size_t *out_count)
{
    size_t left = scan->row.header.bytes;
    size_t patch_size = scan->row.reply_bytes - left;
    Slice chunk = scan->row.first;
    size_t count_max = 2 + left / (VALUE_BYTES_MAX - MESSAGE_HEADER_BYTES), count = 0;
    Slice *pieces = arena_array(scan->txn->arena, Slice, count_max);
    if (!pieces) return arena_error(scan->txn->arena);
    while (chunk.size <= left && count < count_max - 1) {
        pieces[count++] = chunk;
        left -= chunk.size;
        if (left == 0) break;
        KvRow row;
        bool found;
        Error error = kv_next(scan->cursor, &found, &row);
        if (error) return error;
        if (!found || row.key.size != KEY_MESSAGE_BYTES || row.value.size == 0 ||
            memcmp(row.key.bytes + ULID_BYTES, scan->row.id.bytes, ULID_BYTES) != 0) {
            break;
        }
        chunk = row.value;
    }
    if (left > 0)
        return error_say(scan->txn->detail, ERROR_CORRUPT,
                         "the chunks of a message do not add up to its size");
    if (patch_size > 0) pieces[count++] = slice(scan->patch, patch_size);
    scan->is_read = true;
    *out_pieces = pieces;
    *out_count = count;
    return ERROR_NONE;
}
