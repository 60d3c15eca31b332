// Rows of `meta`.

#include "store/meta.h"

#include "base/bytes.h"

#define KEY_FORMAT slice_of("format")
#define KEY_INSTANCE slice_of("instance")
#define KEY_STATE slice_of("state")

enum { STATE_BYTES = ULID_BYTES + 8 + 8 };

KvMark meta_mark(uint64_t format, uint8_t bytes[META_FORMAT_BYTES])
{
    bytes_put_u64(bytes, format);
    return (KvMark){TABLE_META, KEY_FORMAT, slice(bytes, META_FORMAT_BYTES)};
}

Error meta_read_format(KvTxn *txn, ErrorDetail *detail, uint64_t *out_version)
{
    Slice value;
    bool found;
    Error error = kv_get(txn, TABLE_META, KEY_FORMAT, &found, &value);
    if (error) return error;
    *out_version = 0;
    if (!found) return ERROR_NONE;
    if (value.size != META_FORMAT_BYTES) {
        return error_say(detail, ERROR_CORRUPT, "meta.format is %zu bytes long", value.size);
    }
    *out_version = bytes_get_u64(value.bytes);
    return ERROR_NONE;
}

Error meta_read_instance(KvTxn *txn, ErrorDetail *detail, char out[INSTANCE_ID_BYTES])
{
    Slice value;
    bool found;
    Error error = kv_get(txn, TABLE_META, KEY_INSTANCE, &found, &value);
    if (error) return error;
    if (!found || value.size != INSTANCE_ID_BYTES) {
        return error_say(detail, ERROR_CORRUPT, "meta.instance is missing or damaged");
    }
    memcpy(out, value.bytes, INSTANCE_ID_BYTES);
    return ERROR_NONE;
}

Error meta_read_state(KvTxn *txn, ErrorDetail *detail, bool *out_found, StoreState *out)
{
    Slice value;
    Error error = kv_get(txn, TABLE_META, KEY_STATE, out_found, &value);
    if (error || !*out_found) return error;
    if (value.size != STATE_BYTES) {
        return error_say(detail, ERROR_CORRUPT, "meta.state is %zu bytes long", value.size);
    }
    out->last_id = key_id_at(value, 0);
    out->last_event_sequence = bytes_get_u64(value.bytes + ULID_BYTES);
    out->first_event_sequence = bytes_get_u64(value.bytes + ULID_BYTES + 8);
    return ERROR_NONE;
}

Error meta_put_format(KvTxn *txn, uint64_t version)
{
    uint8_t bytes[META_FORMAT_BYTES];
    bytes_put_u64(bytes, version);
    return kv_put(txn, TABLE_META, KEY_FORMAT, slice(bytes, sizeof(bytes)));
}

Error meta_put_instance(KvTxn *txn, const char id[INSTANCE_ID_BYTES])
{
    return kv_put(txn, TABLE_META, KEY_INSTANCE, slice(id, INSTANCE_ID_BYTES));
}

Error meta_put_state(KvTxn *txn, const StoreState *state)
{
    uint8_t bytes[STATE_BYTES];
    memcpy(bytes, state->last_id.bytes, ULID_BYTES);
    bytes_put_u64(bytes + ULID_BYTES, state->last_event_sequence);
    bytes_put_u64(bytes + ULID_BYTES + 8, state->first_event_sequence);
    return kv_put(txn, TABLE_META, KEY_STATE, slice(bytes, sizeof(bytes)));
}
