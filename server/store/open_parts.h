// Open parts: stores which parts an open message has, so that a part can be appended without
// reading the message.
//
// An open message has rows of PART_KIND_OPEN in `parts`. The row with index 0 holds how many parts
// it has and whether it has text. The other indexes are the slots of a hash table that leads from
// the ID of a part to the index of the part. Sealing the message deletes the rows.

#pragma once

#include "base/hash.h"
#include "store/store.h"

// The slot of a part's ID: the one that holds it, or the free one where it would go.
typedef struct PartSlot {
    uint16_t number;
    bool is_taken;
    uint16_t index; // of the part, if `is_taken`
    Hash hash;
} PartSlot;

// Writes all rows of a message that is appended open.
MUST_USE Error open_parts_put(Txn *txn, Ulid session, Ulid message, char **part_ids,
                              size_t part_count, bool has_text);

// Read and write the row with index 0. ERROR_CORRUPT: it is missing or damaged.
MUST_USE Error open_parts_count(Txn *txn, Ulid session, Ulid message, size_t *out_part_count,
                                bool *out_has_text);
MUST_USE Error open_parts_put_count(Txn *txn, Ulid session, Ulid message, size_t part_count,
                                    bool has_text);

// Encodes the value of the row with index 0, for the check.
enum { OPEN_COUNT_BYTES = 3 };
void open_parts_encode_count(size_t part_count, bool has_text, uint8_t out[OPEN_COUNT_BYTES]);

// Finds the slot of a part's ID. ERROR_CORRUPT: a slot is damaged.
MUST_USE Error open_parts_find(Txn *txn, Ulid session, Ulid message, Slice part_id, PartSlot *out);

// Writes a slot that open_parts_find has returned. It then leads to the part with index `index`.
MUST_USE Error open_parts_put_slot(Txn *txn, Ulid session, Ulid message, const PartSlot *slot,
                                   size_t index);

// Deletes all rows of a message.
MUST_USE Error open_parts_delete(Txn *txn, Ulid session, Ulid message);
