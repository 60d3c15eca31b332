// Stored rows.

#include "kv/stored_row.h"

#include <stdio.h>

#include "kv/durable/file_names.h"

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

__attribute__((cold)) Error stored_row_refuse(const KvTxn *txn, const MDB_val *key)
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

bool stored_row_is_right(const MDB_val *key, const MDB_val *stored)
{
    if (stored->mv_size < CHECKSUM_BYTES) return false;
    const uint8_t *bytes = stored->mv_data;
    Slice value = slice(bytes, stored->mv_size - CHECKSUM_BYTES);
    uint64_t checksum = checksum_of_row(slice(key->mv_data, key->mv_size), value);
    return bytes_get_u64(bytes + value.size) == checksum;
}

Error stored_row_verify(KvTxn *txn, const MDB_val *key, const MDB_val *stored,
                        atomic_uint_fast64_t *tag, uint64_t wanted)
{
    if (!stored_row_is_right(key, stored)) return stored_row_refuse(txn, key);
    if (tag) atomic_store_explicit(tag, wanted, memory_order_relaxed);
    return ERROR_NONE;
}
