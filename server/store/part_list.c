// Part listing. The rows of each kind are sorted, and a page merges them. Within a message, parts
// are asked for in order, so the walk through its bytes continues from one to the next.

#include "store/part_list.h"

#include "base/limits.h"
#include "store/message_scan.h"
#include "wire/wire.h"

enum {
    FOUND_PART_HEADER_BYTES_MAX = 2 + ULID_TEXT_BYTES + WIRE_TAG_BYTES_MAX + WIRE_VARINT_BYTES_MAX,
    KIND_COUNT = 4,
};

// The kinds in the request and the kinds in the index.
static const struct {
    PartKind wanted;
    uint8_t stored;
} KINDS[KIND_COUNT] = {
    {PART_KIND_TOOL_USE, PART__KIND_TOOL_USE},
    {PART_KIND_TOOL_RESULT, PART__KIND_TOOL_RESULT},
    {PART_KIND_FILE, PART__KIND_FILE},
    {PART_KIND_EXTENSION, PART__KIND_EXTENSION},
};

// A cursor over the rows of one kind. `row` is the next row, if `has_row` is set.
typedef struct KindCursor {
    KvCursor *cursor;
    KvRow row;
    bool has_row;
    uint8_t kind;
} KindCursor;

typedef struct PartList {
    Txn *txn;
    const PartQuery *query;
    KindCursor kinds[KIND_COUNT];
    size_t kind_count;
    MessageScan scan;  // its current entry is `message`
    Buffer buffer;     // bytes of a message of several chunks; reused for each
    Ulid message;      // whose parts are being read; zero: none
    Slice rest;        // bytes after the last part read
    size_t next_index; // of the next part in `rest`
    size_t bytes_read; // sum over all messages read
} PartList;

static Error kind_settle(PartList *list, KindCursor *kind, bool found)
{
    kind->has_row = false;
    if (!found || !slice_starts_with(kind->row.key, ulid_slice(&list->query->session)))
        return ERROR_NONE;
    if (kind->row.key.size != KEY_PART_BYTES) {
        return error_say(list->txn->detail, ERROR_CORRUPT, "the key of a part has the wrong size");
    }
    kind->has_row = kind->row.key.bytes[ULID_BYTES] == kind->kind;
    return ERROR_NONE;
}

static bool kind_is_wanted(const PartQuery *query, PartKind kind)
{
    for (size_t i = 0; i < query->kind_count; i++) {
        if (query->kinds[i] == kind) return true;
    }
    return query->kind_count == 0;
}

static Error list_begin(PartList *list, const PartPosition *position)
{
    Error error = message_scan_open(&list->scan, list->txn);
    for (size_t i = 0; !error && i < KIND_COUNT; i++) {
        if (!kind_is_wanted(list->query, KINDS[i].wanted)) continue;
        KindCursor *kind = &list->kinds[list->kind_count++];
        kind->kind = KINDS[i].stored;
        error = kv_cursor_open(list->txn->kv, TABLE_PARTS, &kind->cursor);
        if (error) break;
        uint16_t index = ulid_is_zero(position->message) ? 0 : (uint16_t)(position->index + 1);
        Key key = key_part(list->query->session, kind->kind, position->message, index);
        bool found;
        error = kv_seek(kind->cursor, key_slice(&key), &found, &kind->row);
        if (!error) error = kind_settle(list, kind, found);
    }
    return error;
}

static void list_end(PartList *list)
{
    for (size_t i = 0; i < list->kind_count; i++)
        kv_cursor_close(list->kinds[i].cursor);
    message_scan_close(&list->scan);
    buffer_free(&list->buffer);
}

// Returns the message and the index at the end of the row's key. Their order is that of their
// bytes.
static const uint8_t *row_place(const KindCursor *kind)
{
    return kind->row.key.bytes + ULID_BYTES + 1;
}

// Returns the kind with the first remaining row. NULL if no row remains.
static KindCursor *list_first(PartList *list)
{
    KindCursor *first = NULL;
    for (size_t i = 0; i < list->kind_count; i++) {
        KindCursor *kind = &list->kinds[i];
        if (!kind->has_row) continue;
        if (!first || memcmp(row_place(kind), row_place(first), ULID_BYTES + 2) < 0) first = kind;
    }
    return first;
}

// Takes a string, with its length of two bytes, from the front of a row's value.
static bool take_string(Slice *value, Slice *out)
{
    if (value->size < 2) return false;
    size_t size = (size_t)value->bytes[0] << 8 | value->bytes[1];
    *value = slice_skip(*value, 2);
    if (value->size < size) return false;
    *out = slice(value->bytes, size);
    *value = slice_skip(*value, size);
    return true;
}

static Error row_matches(PartList *list, const KindCursor *kind, bool *out)
{
    Slice value = kind->row.value, name, call_id;
    if (!take_string(&value, &name) || !take_string(&value, &call_id)) {
        return error_say(list->txn->detail, ERROR_CORRUPT, "the row of a part is too short");
    }
    const PartQuery *query = list->query;
    *out = (query->name.size == 0 || slice_equal(name, query->name)) &&
           (query->call_id.size == 0 || slice_equal(call_id, query->call_id));
    return ERROR_NONE;
}

static Error message_begin(PartList *list, Ulid message)
{
    Segment segment = {list->query->session, ulid_previous(message), message};
    message_scan_start(&list->scan, &segment, /* is_newest_first= */ false);
    const MessageRow *row;
    bool found;
    Error error = message_scan_next(&list->scan, &found, &row);
    if (error) return error;
    if (!found)
        return error_say(list->txn->detail, ERROR_CORRUPT,
                         "the message of an indexed part is missing");
    list->message = message;
    list->next_index = 0;
    list->rest = row->first;
    list->bytes_read += row->header.bytes;
    if (row->first.size >= row->header.bytes) return ERROR_NONE;
    error = buffer_reset(&list->buffer, 0);
    if (!error)
        error = message_scan_append_to(&list->scan, FIELD_LIST_MESSAGES_RESPONSE_MESSAGES,
                                       &list->buffer);
    if (error) return error;
    Slice whole = buffer_slice(&list->buffer);
    WireField field;
    if (wire_next(&whole, &field)) list->rest = field.bytes;
    return ERROR_NONE;
}

// Finds the bytes of a part. The parts of a message must be asked for in order.
static Error part_bytes(PartList *list, Ulid message, size_t index, Slice *out)
{
    if (!ulid_equal(message, list->message)) {
        Error error = message_begin(list, message);
        if (error) return error;
    }
    WireField field;
    while (wire_next(&list->rest, &field)) {
        if (field.number != FIELD_MESSAGE_PARTS) continue;
        if (list->next_index++ < index) continue;
        *out = field.bytes;
        return ERROR_NONE;
    }
    return error_say(list->txn->detail, ERROR_CORRUPT, "an indexed part is missing in its message");
}

static size_t found_header(Ulid message, size_t index, uint8_t out[FOUND_PART_HEADER_BYTES_MAX])
{
    char id[ULID_TEXT_BYTES + 1];
    ulid_format(message, id);
    size_t size =
        wire_put_bytes_field(out, FIELD_FOUND_PART_MESSAGE_ID, slice(id, ULID_TEXT_BYTES));
    return size + wire_put_varint_field(out + size, FIELD_FOUND_PART_INDEX, index);
}

// Appends a part if it fits into the page. The first part always fits.
static Error append_found(PartList *list, const PartPosition *place, bool is_first, uint32_t field,
                          Buffer *out, bool *out_fits)
{
    Slice part;
    Error error = part_bytes(list, place->message, place->index, &part);
    if (error) return error;
    uint8_t header[FOUND_PART_HEADER_BYTES_MAX];
    size_t header_size = found_header(place->message, place->index, header);
    size_t size = header_size + wire_bytes_field_size(FIELD_FOUND_PART_PART, part.size);
    *out_fits = is_first ||
                buffer_size(out) + wire_bytes_field_size(field, size) <= list->query->page_bytes;
    if (!*out_fits) return ERROR_NONE;
    error = wire_append_header(out, field, size);
    if (!error) error = buffer_append(out, slice(header, header_size));
    return error ? error : wire_append_bytes(out, FIELD_FOUND_PART_PART, part);
}

static Error append_all(PartList *list, PartPosition *position, bool *out_more, uint32_t field,
                        Buffer *out)
{
    uint32_t count = 0;
    *out_more = false;
    for (size_t scanned = 0;; scanned++) {
        KindCursor *kind = list_first(list);
        if (!kind) return ERROR_NONE;
        *out_more = count == list->query->limit || scanned == SCANNED_RECORDS_MAX ||
                    list->bytes_read >= PART_LIST_READ_BYTES_MAX;
        if (*out_more) return ERROR_NONE;
        PartPosition place = {key_id_at(kind->row.key, ULID_BYTES + 1),
                              key_u16_at(kind->row.key, 2 * ULID_BYTES + 1)};
        bool matches = false;
        Error error = row_matches(list, kind, &matches);
        if (error) return error;
        if (matches) {
            bool fits = false;
            error = append_found(list, &place, count == 0, field, out, &fits);
            if (error) return error;
            *out_more = !fits;
            if (!fits) return ERROR_NONE;
            count++;
        }
        *position = place;
        bool found;
        error = kv_next(kind->cursor, &found, &kind->row);
        if (!error) error = kind_settle(list, kind, found);
        if (error) return error;
    }
}

Error part_append_page(Txn *txn, const PartQuery *query, PartPosition *position, bool *out_more,
                       uint32_t field, Buffer *out)
{
    PartList list = {.txn = txn, .query = query};
    Error error = list_begin(&list, position);
    if (!error) error = append_all(&list, position, out_more, field, out);
    list_end(&list);
    return error;
}
