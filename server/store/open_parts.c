// Open parts. The ID of a part is in the slot that its hash names, or in the next free one. IDs are
// only ever added, so a search ends at the first free slot. A slot holds only the hash of an ID, so
// a caller must compare the ID of the part that it leads to.

#include "store/open_parts.h"

#include "base/limits.h"
#include "store/message_part.h"

enum { SLOT_COUNT = UINT16_MAX, SLOT_BYTES = HASH_BYTES + 2 };

static Key open_key(Ulid session, Ulid message, uint16_t index)
{
    return key_part(session, PART_KIND_OPEN, message, index);
}

Error open_parts_put(Txn *txn, Ulid session, Ulid message, char **part_ids, size_t part_count,
                     bool has_text)
{
    for (size_t i = 0; i < part_count; i++) {
        PartSlot slot;
        Error error = open_parts_find(txn, session, message, slice_of(part_ids[i]), &slot);
        if (!error && !slot.is_taken) error = open_parts_put_slot(txn, session, message, &slot, i);
        if (error) return error;
    }
    return open_parts_put_count(txn, session, message, part_count, has_text);
}

Error open_parts_count(Txn *txn, Ulid session, Ulid message, size_t *out_part_count,
                       bool *out_has_text)
{
    Key key = open_key(session, message, 0);
    Slice value;
    bool found;
    Error error = txn_get(txn, TABLE_PARTS, &key, &found, &value);
    if (error) return error;
    if (!found || value.size != OPEN_COUNT_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "an open message has no count of its parts");
    }
    *out_part_count = (size_t)value.bytes[0] << 8 | value.bytes[1];
    *out_has_text = value.bytes[2] != 0;
    return ERROR_NONE;
}

Error open_parts_put_count(Txn *txn, Ulid session, Ulid message, size_t part_count, bool has_text)
{
    uint8_t value[OPEN_COUNT_BYTES];
    open_parts_encode_count(part_count, has_text, value);
    Key key = open_key(session, message, 0);
    return txn_put(txn, TABLE_PARTS, &key, slice(value, sizeof(value)));
}

void open_parts_encode_count(size_t part_count, bool has_text, uint8_t out[OPEN_COUNT_BYTES])
{
    out[0] = (uint8_t)(part_count >> 8);
    out[1] = (uint8_t)part_count;
    out[2] = has_text;
}

Error open_parts_find(Txn *txn, Ulid session, Ulid message, Slice part_id, PartSlot *out)
{
    out->hash = hash_bytes(part_id);
    out->is_taken = false;
    size_t slot = ((size_t)out->hash.bytes[0] << 8 | out->hash.bytes[1]) % SLOT_COUNT;
    for (size_t i = 0; i <= PART_COUNT_MAX; i++, slot = (slot + 1) % SLOT_COUNT) {
        out->number = (uint16_t)(slot + 1);
        Key key = open_key(session, message, out->number);
        Slice value;
        bool found;
        Error error = txn_get(txn, TABLE_PARTS, &key, &found, &value);
        if (error || !found) return error;
        if (value.size != SLOT_BYTES) break;
        if (memcmp(value.bytes, out->hash.bytes, HASH_BYTES) != 0) continue;
        out->index = (uint16_t)(value.bytes[HASH_BYTES] << 8 | value.bytes[HASH_BYTES + 1]);
        out->is_taken = true;
        return ERROR_NONE;
    }
    return error_say(txn->detail, ERROR_CORRUPT,
                     "the rows for the part IDs of an open message are damaged");
}

Error open_parts_put_slot(Txn *txn, Ulid session, Ulid message, const PartSlot *slot, size_t index)
{
    uint8_t value[SLOT_BYTES];
    memcpy(value, slot->hash.bytes, HASH_BYTES);
    value[HASH_BYTES] = (uint8_t)(index >> 8);
    value[HASH_BYTES + 1] = (uint8_t)index;
    Key key = open_key(session, message, slot->number);
    return txn_put(txn, TABLE_PARTS, &key, slice(value, sizeof(value)));
}

Error open_parts_delete(Txn *txn, Ulid session, Ulid message)
{
    return message_parts_delete_kind(txn, session, message, PART_KIND_OPEN);
}
