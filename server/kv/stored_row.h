// Stored rows: the form that keys and values have in the tree, and their verification.
//
// A stored key is the table's byte and the key. A stored value is the value and its checksum.
//
// A read verifies the checksum of what it returns. Hashing a value costs more than copying it, so a
// read transaction remembers what it has verified, for all later read transactions of the process:
// a table of tags, indexed by the value's place in the map. A tag is the checksum as it was read,
// mixed with the place; a row that was replaced has another one. So the tags leave open that a page
// changes in memory after it was verified, or is read again from a disk that has changed it, while
// the checksum stays the same. A write transaction always verifies, because its reads are written
// back.

#pragma once

#include "kv/checksum.h"
#include "kv/kv_fields.h"

enum { STORED_KEY_BYTES_MAX = 1 + KEY_BYTES_MAX };

static inline uint8_t stored_table_byte(const Kv *kv, KvTable table)
{
    assert(table < kv->table_count);
    return (uint8_t)(KV_TABLE_BYTE + kv->tables[table].number);
}

// Writes a stored key to `bytes`, and returns it.
static inline MDB_val stored_key(uint8_t table_byte, Slice key, uint8_t bytes[STORED_KEY_BYTES_MAX])
{
    assert(key.size > 0 && key.size <= KEY_BYTES_MAX);
    bytes[0] = table_byte;
    memcpy(bytes + 1, key.bytes, key.size);
    return (MDB_val){.mv_size = key.size + 1, .mv_data = bytes};
}

// Puts a row, with its checksum. Returns LMDB's code.
int stored_row_put(MDB_txn *txn, MDB_dbi tree, MDB_cursor *cursor, MDB_val *key, Slice value,
                   unsigned flags);

// Lets the processor fetch what stored_row_open looks at, and where the value begins.
static inline void stored_row_fetch(const MDB_val *stored)
{
    const uint8_t *bytes = stored->mv_data;
    __builtin_prefetch(bytes);
    __builtin_prefetch(bytes + stored->mv_size - 1);
}

// Returns the value of a stored row. ERROR_CORRUPT: its checksum is wrong; `detail` names the row.
MUST_USE Error stored_row_open(KvTxn *txn, const MDB_val *key, const MDB_val *stored,
                               Slice *out_value);
