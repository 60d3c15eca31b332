// Rows of `meta`.

#include "store/meta.h"

#include "base/bytes.h"
#include "base/limits.h"

#define KEY_FORMAT slice_of("format")
#define KEY_INSTANCE slice_of("instance")
#define KEY_STATE slice_of("state")

enum { STATE_BYTES = ULID_BYTES + 7 * 8 + HASH_BYTES, STATE_2_BYTES = ULID_BYTES + 2 * 8 };

static const uint8_t FORMAT[8] = {[7] = STORE_FORMAT_VERSION};

KvSign meta_sign(void)
{
    return (KvSign){"meta", KEY_FORMAT, slice(FORMAT, sizeof(FORMAT))};
}

static Error refuse_format(ErrorDetail *detail, const char *what)
{
    return error_say(detail, ERROR_CORRUPT,
                     "meta.format %s: the store is damaged; restore a backup with `tine "
                     "restore-backup`",
                     what);
}

static Error decode_format(Slice value, ErrorDetail *detail, uint64_t *out_version)
{
    if (value.size != sizeof(FORMAT)) return refuse_format(detail, "has the wrong size");
    *out_version = bytes_get_u64(value.bytes);
    return *out_version > 0 ? ERROR_NONE : refuse_format(detail, "is 0");
}

// A sign without the row of `meta` is right only in a file without rows of the present form.
static Error read_sign(Slice sign, bool has_rows, ErrorDetail *detail, uint64_t *out_version)
{
    Error error = decode_format(sign, detail, out_version);
    if (error || *out_version > STORE_FORMAT_VERSION) return error;
    bool is_old = *out_version < STORE_FORMAT_VERSION;
    return is_old && !has_rows ? ERROR_NONE : refuse_format(detail, "is missing");
}

Error meta_read_format(KvTxn *txn, ErrorDetail *detail, uint64_t *out_version)
{
    Slice row, sign;
    bool is_empty, has_rows, has_row, has_sign;
    Error error = kv_survey(txn, &is_empty, &has_rows);
    *out_version = 0;
    if (error || is_empty) return error;
    error = kv_get_sign(txn, &has_sign, &sign);
    if (!error) error = kv_get(txn, TABLE_META, KEY_FORMAT, &has_row, &row);
    if (error) return error;
    if (has_row) {
        error = decode_format(row, detail, out_version);
        bool is_signed = has_sign && slice_equal(sign, slice(FORMAT, sizeof(FORMAT)));
        if (error || *out_version != STORE_FORMAT_VERSION || is_signed) return error;
        return refuse_format(detail, "differs from the file's sign");
    }
    if (has_sign) return read_sign(sign, has_rows, detail, out_version);
    return refuse_format(detail, "is missing");
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

static Error refuse_state(ErrorDetail *detail, size_t size)
{
    return error_say(detail, ERROR_CORRUPT, "meta.state is %zu bytes long", size);
}

Error meta_decode_state_2(Slice value, ErrorDetail *detail, StoreState *out)
{
    if (value.size != STATE_2_BYTES) return refuse_state(detail, value.size);
    *out = (StoreState){
        .last_id = key_id_at(value, 0),
        .last_event_sequence = bytes_get_u64(value.bytes + ULID_BYTES),
        .first_event_sequence = bytes_get_u64(value.bytes + ULID_BYTES + 8),
    };
    return ERROR_NONE;
}

static bool time_is_valid(const StoreTime *time)
{
    return time->now_ms >= 0 && time->now_ms <= TIME_MS_MAX && time->boot_ms >= 0 &&
           time->boot_ms <= TIME_MS_MAX && time->wall_ms >= 0 && time->wall_ms <= TIME_MS_MAX;
}

Error meta_read_state(KvTxn *txn, ErrorDetail *detail, bool *out_found, StoreState *out)
{
    Slice value;
    Error error = kv_get(txn, TABLE_META, KEY_STATE, out_found, &value);
    if (error || !*out_found) return error;
    if (value.size != STATE_BYTES) return refuse_state(detail, value.size);
    const uint8_t *numbers = value.bytes + ULID_BYTES;
    *out = (StoreState){
        .last_id = key_id_at(value, 0),
        .last_event_sequence = bytes_get_u64(numbers),
        .first_event_sequence = bytes_get_u64(numbers + 8),
        .last_operation = bytes_get_u64(numbers + 16),
        .first_operation = bytes_get_u64(numbers + 24),
        .time = {.now_ms = (int64_t)bytes_get_u64(numbers + 32),
                 .boot_ms = (int64_t)bytes_get_u64(numbers + 40),
                 .wall_ms = (int64_t)bytes_get_u64(numbers + 48)},
    };
    memcpy(out->time.boot.bytes, numbers + 56, HASH_BYTES);
    if (time_is_valid(&out->time)) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT, "meta.state has a time that cannot be");
}

Error meta_put_format(KvTxn *txn)
{
    Error error = kv_put_sign(txn);
    return error ? error : kv_put(txn, TABLE_META, KEY_FORMAT, slice(FORMAT, sizeof(FORMAT)));
}

Error meta_put_instance(KvTxn *txn, const char id[INSTANCE_ID_BYTES])
{
    return kv_put(txn, TABLE_META, KEY_INSTANCE, slice(id, INSTANCE_ID_BYTES));
}

Error meta_put_state(KvTxn *txn, const StoreState *state)
{
    uint8_t bytes[STATE_BYTES];
    uint8_t *numbers = bytes + ULID_BYTES;
    memcpy(bytes, state->last_id.bytes, ULID_BYTES);
    bytes_put_u64(numbers, state->last_event_sequence);
    bytes_put_u64(numbers + 8, state->first_event_sequence);
    bytes_put_u64(numbers + 16, state->last_operation);
    bytes_put_u64(numbers + 24, state->first_operation);
    bytes_put_u64(numbers + 32, (uint64_t)state->time.now_ms);
    bytes_put_u64(numbers + 40, (uint64_t)state->time.boot_ms);
    bytes_put_u64(numbers + 48, (uint64_t)state->time.wall_ms);
    memcpy(numbers + 56, state->time.boot.bytes, HASH_BYTES);
    return kv_put(txn, TABLE_META, KEY_STATE, slice(bytes, sizeof(bytes)));
}
