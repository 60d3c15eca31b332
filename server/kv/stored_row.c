// Stored rows.

#include "kv/stored_row.h"

#include <stdio.h>

#include "base/bytes.h"
#include "kv/durable/file_names.h"

// Up to this size, hashing a value costs no more than looking for its tag.
enum { VALUE_BYTES_UNTAGGED = 64 };

int stored_row_put(MDB_txn *txn, MDB_dbi tree, MDB_cursor *cursor, MDB_val *key, Slice value,
                   unsigned flags)
{
    MDB_val stored = {.mv_size = value.size + CHECKSUM_BYTES};
    flags |= MDB_RESERVE;
    int code = cursor ? mdb_cursor_put(cursor, key, &stored, flags)
                      : mdb_put(txn, tree, key, &stored, flags);
    if (code) return code;
    uint8_t *bytes = stored.mv_data;
    if (value.size > 0) memcpy(bytes, value.bytes, value.size);
    uint64_t checksum = checksum_of_row(slice(key->mv_data, key->mv_size), value);
    bytes_put_u64(bytes + value.size, checksum);
    return 0;
}

static const char *table_name_of(const Kv *kv, const MDB_val *key)
{
    const uint8_t *bytes = key->mv_data;
    for (size_t i = 0; key->mv_size > 0 && i < kv->table_count; i++)
        if (bytes[0] == stored_table_byte(kv, (KvTable)i)) return kv->tables[i].name;
    return "?";
}

__attribute__((cold)) static Error refuse_row(const KvTxn *txn, const MDB_val *key)
{
    enum { SHOWN_BYTES = 80 };
    char text[2 * SHOWN_BYTES + 1] = "";
    const uint8_t *bytes = key->mv_data;
    size_t count = key->mv_size > 0 ? key->mv_size - 1 : 0;
    if (count > SHOWN_BYTES) count = SHOWN_BYTES;
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[1 + i]);
    return error_say(txn->detail, ERROR_CORRUPT,
                     "a row of %s in %s/" KV_FILE_DATA " was changed outside of tine: its "
                     "checksum is wrong (key %s); run `tine check`, and restore a backup with "
                     "`tine restore-backup`",
                     table_name_of(txn->kv, key), txn->kv->file->directory, text);
}

// Where a value lies in the map, as a number whose upper bits are spread.
static inline uint64_t place_of(const uint8_t *bytes)
{
    return (uint64_t)(uintptr_t)bytes * UINT64_C(0x9E3779B97F4A7C15);
}

Error stored_row_open(KvTxn *txn, const MDB_val *key, const MDB_val *stored, Slice *out_value)
{
    if (stored->mv_size < CHECKSUM_BYTES) return refuse_row(txn, key);
    const uint8_t *bytes = stored->mv_data;
    Slice value = slice(bytes, stored->mv_size - CHECKSUM_BYTES);
    uint64_t checksum = bytes_get_u64(bytes + value.size);

    atomic_uint_fast64_t *tag = NULL;
    uint64_t place = place_of(bytes), wanted = checksum ^ place;
    if (!txn->is_write && value.size > VALUE_BYTES_UNTAGGED) {
        tag = &txn->kv->tags[place >> 32 & (CHECKSUM_TAGS - 1)];
        if (atomic_load_explicit(tag, memory_order_relaxed) == wanted) {
            *out_value = value;
            return ERROR_NONE;
        }
    }
    if (checksum_of_row(slice(key->mv_data, key->mv_size), value) != checksum)
        return refuse_row(txn, key);
    if (tag) atomic_store_explicit(tag, wanted, memory_order_relaxed);
    *out_value = value;
    return ERROR_NONE;
}
