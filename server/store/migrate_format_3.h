// Format 3: what rows of formats 1 and 2 become whose contents have changed.
//
// Format 3 has store times and numbers where the older formats had creation times and IDs, and the
// keys of message_external begin with the hash. migrate_rows.c copies the tables in the order of
// their numbers and calls these functions for the rows that it does not copy as they are.

#pragma once

#include "store/store.h"

// What the copy of one table remembers. Zeroed before each table.
typedef struct FormatThree {
    int64_t last_at; // the store time of the record before
} FormatThree;

// Fills the state of `txn` from meta.state, `old`. The store time begins now.
MUST_USE Error format_3_state(Txn *txn, Slice old);

// Makes the header of an event: its store time is when it was created, but not after now or before
// the last event. `first` is its first chunk.
void format_3_event(const Txn *txn, FormatThree *walk, Slice first, uint8_t *out_header);

// Gives an operation, which was copied as it is, the next number, and a store time as above.
// `issued` is its old date. An operation that is missing or damaged stays as it is.
MUST_USE Error format_3_operation(Txn *txn, FormatThree *walk, Ulid issued, Slice operation_id);

// Puts the row of message_external for a message, if it has an external ID. `first` is its first
// chunk; if it is damaged, there is no row. The old rows are not used: tombstones had none.
MUST_USE Error format_3_message(Txn *txn, Ulid session, Ulid message, Slice first);
