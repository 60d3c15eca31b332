// Part index: records which tool, file and extension parts a session has.

#pragma once

#include "names.h"
#include "store/store.h"

// The kind of the rows that an open message has in the same table (store/open_parts.h).
enum { PART_KIND_OPEN = 0 };

// Writes the index rows of a message's parts. Parts of other kinds have none.
MUST_USE Error message_parts_put(Txn *txn, Ulid session, Ulid message, Part **parts,
                                 size_t part_count);

// Writes the index row of part number `index` of a message.
MUST_USE Error message_part_put(Txn *txn, Ulid session, Ulid message, size_t index,
                                const Part *part);

// Deletes a message's rows of one kind.
MUST_USE Error message_parts_delete_kind(Txn *txn, Ulid session, Ulid message, uint8_t kind);

// Deletes all rows of a message.
MUST_USE Error message_parts_delete(Txn *txn, Ulid session, Ulid message);

// Writes the value of a part's row: its name (tool name, extension type or file name) and its call
// ID, each after a length of two bytes. Returns false if parts of this kind have no row.
bool message_part_row(const Part *part, uint8_t *out_value, size_t *out_size);
enum { MESSAGE_PART_VALUE_BYTES_MAX = 2 * (2 + 256) };
