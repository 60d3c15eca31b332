// Check of entries and their indexes, in both directions: owner, external ID, marker or setting,
// parts.

#include "store/check_pass.h"
#include "store/marker.h"
#include "store/message.h"
#include "store/message_part.h"
#include "store/open_parts.h"
#include "store/record.h"

// The fields of an entry that its indexes depend on.
typedef struct Entry {
    Slice key;
    Ulid session;
    Ulid id;
    const Message *message;
    bool is_deleted;
} Entry;

static Error check_owner_of(Check *check, const Entry *entry)
{
    Key key = key_of_id(entry->id);
    bool found;
    Slice owner;
    Error error = check_row(check, TABLE_MESSAGE_OWNER, &key, &found, &owner);
    if (error || (found && slice_equal(owner, ulid_slice(&entry->session)))) return error;
    check_damage(check, DAMAGE_MESSAGE_OWNER, TABLE_MESSAGES, entry->key,
                 "message_owner does not name its session");
    return ERROR_NONE;
}

static bool kind_is_indexed(MessageKind kind)
{
    return kind == MESSAGE_KIND_COMPACTION || kind == MESSAGE_KIND_SETTING;
}

// Computes the value that a marker's index row must have. Returns false if the cut-off in the
// marker is not an ID.
static bool cut_off_of(const Marker *marker, Ulid *out)
{
    *out = ULID_MAX;
    if (marker->keep_all) *out = ULID_ZERO;
    if (marker->keep_all || !*marker->before_message_id) return true;
    return ulid_parse(slice_of(marker->before_message_id), out);
}

// Checks that a cut-off is in the history of its marker.
static Error check_cut_off(Check *check, const Entry *entry, Ulid cut_off)
{
    if (ulid_is_zero(cut_off) || ulid_equal(cut_off, ULID_MAX)) return ERROR_NONE;
    Ulid owner;
    SegmentList segments = {.count = 0};
    Error error = message_owner(&check->txn, cut_off, &owner);
    if (!error) error = origin_segments(&check->txn, entry->session, entry->id, &segments);
    if (error) return check_survive(check, error, TABLE_MESSAGES, entry->key);
    if (segments_contain(&segments, owner, cut_off)) return ERROR_NONE;
    check_damage(check, DAMAGE_MARKER, TABLE_MESSAGES, entry->key,
                 "the cut-off of its marker is not in its history");
    return ERROR_NONE;
}

static Error check_marker_of(Check *check, const Entry *entry)
{
    const Message *message = entry->message;
    bool is_marker = message->kind == MESSAGE_KIND_COMPACTION;
    if (is_marker != (message->marker != NULL)) {
        check_damage(check, DAMAGE_MARKER, TABLE_MESSAGES, entry->key,
                     "it is a COMPACTION without a marker, or has a marker and another kind");
        return ERROR_NONE;
    }
    if (!kind_is_indexed(message->kind) || entry->is_deleted) return ERROR_NONE;
    Key key = key_marker(entry->session, (uint8_t)message->kind, entry->id);
    bool found;
    Slice value = {NULL, 0}, expected = {NULL, 0};
    Error error = check_row(check, TABLE_MARKERS, &key, &found, &value);
    if (error) return error;
    Ulid cut_off = ULID_ZERO;
    bool is_right = found;
    if (is_marker) {
        is_right = is_right && cut_off_of(message->marker, &cut_off);
        expected = ulid_slice(&cut_off);
    }
    if (!is_right || !slice_equal(value, expected)) {
        check_damage(check, DAMAGE_MARKER, TABLE_MESSAGES, entry->key,
                     "markers has no row for it, or its row has another cut-off");
        return ERROR_NONE;
    }
    return is_marker ? check_cut_off(check, entry, cut_off) : ERROR_NONE;
}

static Error check_external_of(Check *check, const Entry *entry)
{
    const External *external = entry->message->external;
    if (!external) return ERROR_NONE;
    Key key = message_external_key(external, entry->session);
    bool found;
    Slice value;
    Error error = check_row(check, TABLE_MESSAGE_EXTERNAL, &key, &found, &value);
    if (error || (found && slice_equal(value, ulid_slice(&entry->id)))) return error;
    check_damage(check, DAMAGE_MESSAGE_EXTERNAL, TABLE_MESSAGES, entry->key,
                 "message_external does not lead to it");
    return ERROR_NONE;
}

static Error check_parts_of(Check *check, const Entry *entry)
{
    for (size_t i = 0; i < entry->message->n_parts; i++) {
        const Part *part = entry->message->parts[i];
        uint8_t expected[MESSAGE_PART_VALUE_BYTES_MAX];
        size_t size;
        if (!message_part_row(part, expected, &size)) continue;
        Key key = key_part(entry->session, (uint8_t)part->kind_case, entry->id, (uint16_t)i);
        bool found;
        Slice value;
        Error error = check_row(check, TABLE_PARTS, &key, &found, &value);
        if (error) return error;
        if (found) check->part_rows++;
        if (found && slice_equal(value, slice(expected, size))) continue;
        check_damage(check, DAMAGE_PART, TABLE_MESSAGES, entry->key,
                     "parts has no row for part %zu, or its row is wrong", i);
    }
    return ERROR_NONE;
}

// Checks the rows with which an open message accepts parts (store/open_parts.h).
static Error check_open_rows(Check *check, const Entry *entry, Slice bytes)
{
    const Message *message = entry->message;
    uint8_t expected[OPEN_COUNT_BYTES];
    open_parts_encode_count(message->n_parts, message_has_text(bytes), expected);
    Key key = key_part(entry->session, PART_KIND_OPEN, entry->id, 0);
    bool found;
    Slice value;
    Error error = check_row(check, TABLE_PARTS, &key, &found, &value);
    if (error) return error;
    if (found) check->part_rows++;
    if (!found || !slice_equal(value, slice(expected, sizeof(expected)))) {
        check_damage(check, DAMAGE_PART, TABLE_MESSAGES, entry->key,
                     "it is open, but parts has no count of its parts, or a wrong one");
    }
    for (size_t i = 0; i < message->n_parts; i++) {
        PartSlot slot;
        error = open_parts_find(&check->txn, entry->session, entry->id,
                                slice_of(message->parts[i]->id), &slot);
        if (error) return check_survive(check, error, TABLE_MESSAGES, entry->key);
        if (slot.is_taken && slot.index == i) {
            check->part_rows++;
            continue;
        }
        check_damage(check, DAMAGE_PART, TABLE_MESSAGES, entry->key,
                     "it is open, but parts does not lead from the ID of part %zu to that part", i);
    }
    return ERROR_NONE;
}

Error check_entry_indexes(Check *check, Slice key, SessionState state, const Message *message,
                          Slice bytes, bool is_purged)
{
    Entry entry = {
        .key = key,
        .session = key_id_at(key, 0),
        .id = key_id_at(key, ULID_BYTES),
        .message = message,
        .is_deleted = message->deleted_at != 0,
    };
    Error error = check_owner_of(check, &entry);
    if (!error) error = check_marker_of(check, &entry);
    if (!error) error = check_external_of(check, &entry);
    // A tombstone keeps only its messages, their owners and external IDs, markers and origins.
    if (error || !state.is_live) return error;
    if (entry.is_deleted || is_purged) return error;
    error = check_parts_of(check, &entry);
    if (error || message->status != MESSAGE_STATUS_OPEN) return error;
    return check_open_rows(check, &entry, bytes);
}

// The reverse direction: from an index row to the entry that it names.

// Reads the message that a row names. If there is none, reports damage of kind `kind` and sets
// `*out` to NULL.
static Error entry_named(Check *check, DamageKind kind, StoreTable table, Slice key, Ulid session,
                         Ulid id, const Message **out)
{
    *out = NULL;
    Key record_key = key_of_ids(session, id);
    bool found;
    Slice bytes;
    Error error = record_get(&check->txn, TABLE_MESSAGES, &record_key, &found, &bytes);
    if (error) return check_survive(check, error, table, key);
    if (!found) {
        check_damage(check, kind, table, key, "the message that it names does not exist");
        return ERROR_NONE;
    }
    if (bytes.size < MESSAGE_HEADER_BYTES) return ERROR_NONE; // check_log reports it
    Message *message;
    error = check_decode(check, &message__descriptor, TABLE_MESSAGES, key_slice(&record_key),
                         slice_skip(bytes, MESSAGE_HEADER_BYTES), &message);
    *out = message;
    return error;
}

static Error check_owner_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    if (bytes.size != ULID_BYTES) {
        check_damage(check, DAMAGE_MESSAGE_OWNER, TABLE_MESSAGE_OWNER, key,
                     "its value is not a session ID");
        return ERROR_NONE;
    }
    Key record_key = key_of_ids(key_id_at(bytes, 0), key_id_at(key, 0));
    Key first = key_with_chunk(&record_key, 0);
    bool found;
    Error error = check_row(check, TABLE_MESSAGES, &first, &found, NULL);
    if (error || found) return error;
    check_damage(check, DAMAGE_MESSAGE_OWNER, TABLE_MESSAGE_OWNER, key,
                 "the session that it names has no such message");
    return ERROR_NONE;
}

// Returns whether no purge is deleting the rows of this session.
static Error is_settled(Check *check, Slice key, bool *out)
{
    SessionState state;
    Error error = check_session_state(check, key_id_at(key, 0), &state);
    if (!error) *out = state.is_live || state.is_tombstone;
    return error;
}

static Error check_marker_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    (void)bytes; // check_marker_of compares it
    bool settled = false;
    Error error = is_settled(check, key, &settled);
    if (error || !settled) return error;
    const Message *message;
    error = entry_named(check, DAMAGE_MARKER, TABLE_MARKERS, key, key_id_at(key, 0),
                        key_id_at(key, ULID_BYTES + 1), &message);
    if (error || !message) return error;
    if (key.bytes[ULID_BYTES] != (uint8_t)message->kind || !kind_is_indexed(message->kind) ||
        message->deleted_at != 0) {
        check_damage(check, DAMAGE_MARKER, TABLE_MARKERS, key,
                     "the entry has another kind or is deleted");
    }
    return ERROR_NONE;
}

static Error check_external_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    Ulid session = key_id_at(key, HASH_BYTES);
    if (bytes.size != ULID_BYTES) {
        check_damage(check, DAMAGE_MESSAGE_EXTERNAL, TABLE_MESSAGE_EXTERNAL, key,
                     "its value is not a message ID");
        return ERROR_NONE;
    }
    const Message *message;
    Error error = entry_named(check, DAMAGE_MESSAGE_EXTERNAL, TABLE_MESSAGE_EXTERNAL, key, session,
                              key_id_at(bytes, 0), &message);
    if (error || !message) return error;
    Key right = {.size = 0};
    if (message->external) right = message_external_key(message->external, session);
    if (!slice_equal(key_slice(&right), key)) {
        check_damage(check, DAMAGE_MESSAGE_EXTERNAL, TABLE_MESSAGE_EXTERNAL, key,
                     "the message has another external ID or none");
    }
    return ERROR_NONE;
}

static Error check_part_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    (void)bytes; // check_parts_of compares it
    bool settled = false;
    Error error = is_settled(check, key, &settled);
    if (error || !settled) return error;
    const Message *message;
    error = entry_named(check, DAMAGE_PART, TABLE_PARTS, key, key_id_at(key, 0),
                        key_id_at(key, ULID_BYTES + 1), &message);
    if (error || !message) return error;
    size_t index = key_u16_at(key, 2 * ULID_BYTES + 1);
    if (key.bytes[ULID_BYTES] == PART_KIND_OPEN) {
        if (message->status != MESSAGE_STATUS_OPEN || message->deleted_at != 0) {
            check_damage(check, DAMAGE_PART, TABLE_PARTS, key,
                         "it is a row of an open message, but the message is not open");
        }
        return ERROR_NONE;
    }
    if (message->deleted_at != 0 || index >= message->n_parts ||
        (uint8_t)message->parts[index]->kind_case != key.bytes[ULID_BYTES]) {
        check_damage(check, DAMAGE_PART, TABLE_PARTS, key,
                     "the message has no such part or is deleted");
    }
    return ERROR_NONE;
}

static Error count_part_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)bytes;
    uint64_t *count = context;
    bool settled = false;
    Error error = is_settled(check, key, &settled);
    if (settled) (*count)++;
    return error;
}

// All rows that messages require were looked up already. So the message of each row is read only if
// there are more rows than that. One message may have thousands of rows.
static Error check_part_rows(Check *check)
{
    uint64_t count = 0;
    Slice all = {NULL, 0};
    Error error = check_each(check, TABLE_PARTS, all, count_part_row, &count);
    if (error || count == check->part_rows) return error;
    return check_each(check, TABLE_PARTS, all, check_part_row, NULL);
}

Error check_entry_rows(Check *check)
{
    Slice all = {NULL, 0};
    Error error = check_each(check, TABLE_MESSAGE_OWNER, all, check_owner_row, NULL);
    if (!error) error = check_each(check, TABLE_MARKERS, all, check_marker_row, NULL);
    if (!error) error = check_each(check, TABLE_MESSAGE_EXTERNAL, all, check_external_row, NULL);
    return error ? error : check_part_rows(check);
}
