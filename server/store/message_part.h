// The index of parts: which tool, file and extension parts a session has.

#pragma once

#include "names.h"
#include "store/store.h"

// The kind under which an open message has rows of its own there (store/message_open.h).
enum { PART_KIND_OPEN = 0 };

// Writes the rows of a message's parts. Parts of other kinds have none.
MUST_USE Error message_parts_put(Txn *txn, Ulid session, Ulid message, Part **parts,
                                 size_t part_count);

// Writes the row of one part, the message's `index`-th.
MUST_USE Error message_part_put(Txn *txn, Ulid session, Ulid message, size_t index,
                                const Part *part);

// Deletes the rows of a message of one kind.
MUST_USE Error message_parts_delete_kind(Txn *txn, Ulid session, Ulid message, uint8_t kind);

// Deletes all rows of a message.
MUST_USE Error message_parts_delete(Txn *txn, Ulid session, Ulid message);

// The value of one part's row: its tool name (or type, or file name) and its call id, each behind a
// length of two bytes. False: this kind has no row.
bool message_part_row(const Part *part, uint8_t *out_value, size_t *out_size);
enum { MESSAGE_PART_VALUE_BYTES_MAX = 2 * (2 + 256) };
