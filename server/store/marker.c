// Markers: validates cut-offs and maintains and searches the index.

#include "store/marker.h"

#include "store/planted.h"
#include "wire/wire.h"

Error marker_cut_off(Txn *txn, const Marker *marker, Ulid parent, Ulid *out)
{
    if (marker->keep_all) {
        *out = ULID_ZERO;
        return ERROR_NONE;
    }
    if (!*marker->before_message_id) {
        *out = ULID_MAX;
        return ERROR_NONE;
    }
    Ulid cut_off, owner, parent_owner;
    if (!ulid_parse(slice_of(marker->before_message_id), &cut_off)) {
        return error_say(txn->detail, ERROR_INVALID_ARGUMENT,
                         "marker.before_message_id is not an ID");
    }
    Error error = message_owner(txn, cut_off, &owner);
    if (error) return error;
    bool is_inside = false;
    if (!ulid_is_zero(parent)) {
        SegmentList segments;
        error = message_owner(txn, parent, &parent_owner);
        if (!error) error = origin_segments(txn, parent_owner, parent, &segments);
        if (error) return error;
        is_inside = segments_contain(&segments, owner, cut_off);
    }
    if (!is_inside) {
        return error_say(txn->detail, ERROR_INVALID_ARGUMENT,
                         "marker.before_message_id %s is not in the history",
                         marker->before_message_id);
    }
    *out = cut_off;
    return ERROR_NONE;
}

static bool kind_is_indexed(MessageKind kind)
{
    return kind == MESSAGE_KIND_COMPACTION || kind == MESSAGE_KIND_SETTING;
}

Error marker_index_put(Txn *txn, Ulid session, MessageKind kind, Ulid message, Ulid cut_off)
{
    if (!kind_is_indexed(kind)) return ERROR_NONE;
    Key key = key_marker(session, (uint8_t)kind, message);
    Slice value = kind == MESSAGE_KIND_COMPACTION ? ulid_slice(&cut_off) : (Slice){NULL, 0};
    return txn_put(txn, TABLE_MARKERS, &key, value);
}

Error marker_index_delete(Txn *txn, Ulid session, MessageKind kind, Ulid message)
{
    if (!kind_is_indexed(kind)) return ERROR_NONE;
    Key key = key_marker(session, (uint8_t)kind, message);
    return txn_delete(txn, TABLE_MARKERS, &key);
}

static Error marker_in_segment(Txn *txn, KvCursor *cursor, const Segment *segment, MessageKind kind,
                               Ulid before, MarkerPlace *out)
{
    Ulid bound = ulid_next(segment->through);
    if (ulid_compare(before, bound) < 0) bound = before;
    Key key = key_marker(segment->session, (uint8_t)kind, bound);
    KvRow row;
    bool found;
    Error error = kv_seek_before(cursor, key_slice(&key), &found, &row);
    if (error || !found || row.key.size != KEY_MARKER_BYTES) return error;
    if (memcmp(row.key.bytes, key.bytes, ULID_BYTES + 1) != 0) return ERROR_NONE;
    Ulid message = key_id_at(row.key, ULID_BYTES + 1);
    if (ulid_compare(message, segment->after) <= 0) return ERROR_NONE;
    *out = (MarkerPlace){.is_found = true, .session = segment->session, .message = message};
    if (kind != MESSAGE_KIND_COMPACTION) return ERROR_NONE;
    if (row.value.size != ULID_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "a marker's cut-off is not an ID");
    }
    out->cut_off = key_id_at(row.value, 0);
    if (ulid_equal(out->cut_off, ULID_MAX)) out->cut_off = message;
    if (PLANTED(3, true, false)) out->cut_off = ulid_previous(out->cut_off);
    return ERROR_NONE;
}

Error marker_newest(Txn *txn, const SegmentList *segments, MessageKind kind, Ulid before,
                    MarkerPlace *out)
{
    *out = (MarkerPlace){.is_found = false};
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_MARKERS, &cursor);
    for (size_t i = 0; !error && !out->is_found && i < segments->count; i++) {
        if (ulid_compare(segments->segments[i].after, before) >= 0) continue;
        error = marker_in_segment(txn, cursor, &segments->segments[i], kind, before, out);
    }
    return error;
}

Error marker_has_parts(Txn *txn, const MarkerPlace *marker, bool *out)
{
    MessageHeader header;
    Slice bytes;
    WireField part;
    Error error = message_bytes(txn, marker->session, marker->message, &header, &bytes);
    if (!error) *out = wire_find(bytes, FIELD_MESSAGE_PARTS, &part);
    return error;
}
