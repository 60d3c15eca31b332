// Records in chunks. When a shorter value replaces a longer one, record_put must also delete the
// chunks that are left over. A delete that finds no row tells it that there are no more.

#include "store/record.h"

#include <assert.h>

#include "base/limits.h"

static Error chunks_put(Txn *txn, StoreTable table, const Key *key, Slice bytes, size_t *out_count)
{
    size_t count = (bytes.size + VALUE_BYTES_MAX - 1) / VALUE_BYTES_MAX;
    if (count == 0) count = 1;
    assert(count <= CHUNK_COUNT_MAX);
    for (size_t i = 0; i < count; i++) {
        Slice rest = slice_skip(bytes, i * VALUE_BYTES_MAX);
        if (rest.size > VALUE_BYTES_MAX) rest.size = VALUE_BYTES_MAX;
        Key chunk_key = key_with_chunk(key, (uint16_t)i);
        Error error = txn_put(txn, table, &chunk_key, rest);
        if (error) return error;
    }
    *out_count = count;
    return ERROR_NONE;
}

static Error chunks_delete_from(Txn *txn, StoreTable table, const Key *key, size_t chunk,
                                size_t *out_rows)
{
    for (; chunk <= CHUNK_COUNT_MAX; chunk++) {
        Key chunk_key = key_with_chunk(key, (uint16_t)chunk);
        bool found = false;
        Error error = kv_delete(txn->kv, table, key_slice(&chunk_key), &found);
        if (error) return error;
        if (!found) return ERROR_NONE;
        if (out_rows) (*out_rows)++;
    }
    return ERROR_NONE;
}

Error record_insert(Txn *txn, StoreTable table, const Key *key, Slice bytes)
{
    size_t count;
    return chunks_put(txn, table, key, bytes, &count);
}

Error record_put(Txn *txn, StoreTable table, const Key *key, Slice bytes)
{
    size_t count;
    Error error = chunks_put(txn, table, key, bytes, &count);
    if (error) return error;
    return chunks_delete_from(txn, table, key, count, NULL);
}

Error record_get_first(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out)
{
    Key chunk_key = key_with_chunk(key, 0);
    return kv_get(txn->kv, table, key_slice(&chunk_key), out_found, out);
}

Error record_get(Txn *txn, StoreTable table, const Key *key, bool *out_found, Slice *out)
{
    Slice first;
    bool found = false;
    Error error = record_get_first(txn, table, key, &found, &first);
    if (error) return error;
    *out_found = found;
    if (!found) return ERROR_NONE;
    if (first.size < VALUE_BYTES_MAX) {
        *out = first;
        return ERROR_NONE;
    }

    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    error = kv_cursor_open(txn->kv, table, &cursor);
    if (error) return error;
    Key chunk_key = key_with_chunk(key, 0);
    KvRow row;
    error = kv_seek(cursor, key_slice(&chunk_key), &found, &row);
    if (error) return error;
    if (!found)
        return error_say(txn->detail, ERROR_CORRUPT, "the first chunk of a record is missing");
    return record_read_on(txn, cursor, &row, out);
}

Error record_read_on(Txn *txn, KvCursor *cursor, const KvRow *first, Slice *out)
{
    if (first->value.size < VALUE_BYTES_MAX) {
        *out = first->value;
        return ERROR_NONE;
    }

    // The size is known only after the last chunk, so double the copy as it grows.
    Slice prefix = {first->key.bytes, first->key.size - 2};
    uint8_t prefix_bytes[KEY_BYTES_MAX];
    memcpy(prefix_bytes, prefix.bytes, prefix.size);
    prefix.bytes = prefix_bytes;

    size_t capacity = 16 * VALUE_BYTES_MAX;
    uint8_t *bytes = arena_alloc(txn->arena, capacity);
    if (!bytes) return arena_error(txn->arena);
    size_t size = 0;
    KvRow row = *first;
    for (;;) {
        if (size + row.value.size > capacity) {
            uint8_t *larger = arena_alloc(txn->arena, 2 * capacity);
            if (!larger) return arena_error(txn->arena);
            memcpy(larger, bytes, size);
            bytes = larger;
            capacity *= 2;
        }
        memcpy(bytes + size, row.value.bytes, row.value.size);
        size += row.value.size;
        if (row.value.size < VALUE_BYTES_MAX) break;

        bool found;
        Error error = kv_next(cursor, &found, &row);
        if (error) return error;
        if (!found || row.key.size != prefix.size + 2) break;
        if (!slice_starts_with(row.key, prefix)) break;
    }
    *out = (Slice){bytes, size};
    return ERROR_NONE;
}

Error record_delete(Txn *txn, StoreTable table, const Key *key, size_t *out_rows)
{
    return chunks_delete_from(txn, table, key, 0, out_rows);
}
