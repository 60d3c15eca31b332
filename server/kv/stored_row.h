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

#include "base/bytes.h"
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

// Returns whether the checksum of a row is right.
bool stored_row_is_right(const MDB_val *key, const MDB_val *stored);

// Returns ERROR_CORRUPT, and names the row in the transaction's detail.
MUST_USE Error stored_row_refuse(const KvTxn *txn, const MDB_val *key);

// Verifies a row whose tag is not there, and leaves one unless `tag` is NULL. ERROR_CORRUPT: the
// checksum is wrong; the transaction's detail names the row.
MUST_USE Error stored_row_verify(KvTxn *txn, const MDB_val *key, const MDB_val *stored,
                                 atomic_uint_fast64_t *tag, uint64_t wanted);

enum {
    VALUE_BYTES_UNTAGGED = 16, // up to this size, hashing a value costs no more than its tag
    TAG_SHIFT = 7, // rows of a page have neighbouring tags, so a scan reads them in line
};

// Returns the value of a stored row. ERROR_CORRUPT: its checksum is wrong; the transaction's detail
// names the row. The part for rows with a tag is inline, because scans do it for each row.
MUST_USE static inline Error stored_row_open(KvTxn *txn, const MDB_val *key, const MDB_val *stored,
                                             Slice *out_value)
{
    const uint8_t *bytes = stored->mv_data;
    size_t size = stored->mv_size - CHECKSUM_BYTES;
    atomic_uint_fast64_t *tag = NULL;
    uint64_t wanted = 0;
    if (!txn->is_write && stored->mv_size > CHECKSUM_BYTES + VALUE_BYTES_UNTAGGED) {
        uint64_t place = (uint64_t)(uintptr_t)bytes * UINT64_C(0x9E3779B97F4A7C15);
        wanted = bytes_get_u64(bytes + size) ^ place;
        tag = &txn->kv->tags[((uintptr_t)bytes >> TAG_SHIFT) % CHECKSUM_TAGS];
    }
    if (!tag || atomic_load_explicit(tag, memory_order_relaxed) != wanted) {
        Error error = stored_row_verify(txn, key, stored, tag, wanted);
        if (error) return error;
    }
    *out_value = slice(bytes, size);
    return ERROR_NONE;
}
