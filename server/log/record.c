// Records as they are stored.

#include "log/record.h"

#include <stddef.h>
#include <string.h>

static const uint32_t MAGIC = 0x474f4c54; // "TLOG"
enum { FORMAT = 1 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are stored as they are here");

typedef struct StoredHeader {
    uint32_t magic;
    uint16_t format;
    uint8_t kind, flags;
    uint32_t body_bytes;
    uint32_t call_count;
    uint64_t position;
    int64_t wall_ms;
    uint64_t flushed_through;
    uint64_t key;
    uint8_t host[LOG_ID_BYTES];
    uint8_t instance[LOG_ID_BYTES];
    uint8_t previous[HASH_BYTES];
    uint8_t chain[HASH_BYTES]; // of all fields above, and of the body
} StoredHeader;

_Static_assert(sizeof(StoredHeader) == LOG_HEADER_BYTES, "no padding");

static Hash chain_of(const StoredHeader *header, Slice body)
{
    return hash_pair(slice(header, offsetof(StoredHeader, chain)), body);
}

void log_record_seal(LogRecord *record, uint8_t out_header[LOG_HEADER_BYTES])
{
    StoredHeader header = {
        .magic = MAGIC,
        .format = FORMAT,
        .kind = (uint8_t)record->kind,
        .body_bytes = (uint32_t)record->body.size,
        .call_count = record->call_count,
        .position = record->position,
        .wall_ms = record->wall_ms,
        .flushed_through = record->flushed_through,
        .key = record->key,
    };
    memcpy(header.host, record->host, LOG_ID_BYTES);
    memcpy(header.instance, record->instance, LOG_ID_BYTES);
    memcpy(header.previous, record->previous.bytes, HASH_BYTES);
    record->chain = chain_of(&header, record->body);
    memcpy(header.chain, record->chain.bytes, HASH_BYTES);
    memcpy(out_header, &header, sizeof(header));
}

bool log_record_read(Slice bytes, LogRecord *out)
{
    StoredHeader header;
    // First of all, because a scan asks at each place where a record can begin.
    if (bytes.size < sizeof(header) || memcmp(bytes.bytes, &MAGIC, sizeof(MAGIC)) != 0)
        return false;
    memcpy(&header, bytes.bytes, sizeof(header));
    if (header.format != FORMAT || header.position == 0) return false;
    if (header.body_bytes > bytes.size - sizeof(header)) return false;
    Slice body = slice(bytes.bytes + sizeof(header), header.body_bytes);
    Hash chain = chain_of(&header, body);
    if (memcmp(chain.bytes, header.chain, HASH_BYTES) != 0) return false;
    *out = (LogRecord){
        .kind = header.kind,
        .call_count = header.call_count,
        .position = header.position,
        .wall_ms = header.wall_ms,
        .flushed_through = header.flushed_through,
        .key = header.key,
        .chain = chain,
        .body = body,
    };
    memcpy(out->host, header.host, LOG_ID_BYTES);
    memcpy(out->instance, header.instance, LOG_ID_BYTES);
    memcpy(out->previous.bytes, header.previous, HASH_BYTES);
    return true;
}

// u8 kind, u8 table, u16 bytes of the key, u32 bytes of the value.
enum { ROW_PUT = 1, ROW_DELETE = 2 };

void log_row_begin(const LogRow *row, uint8_t out_header[LOG_ROW_HEADER_BYTES])
{
    uint16_t key_bytes = (uint16_t)row->key.size;
    uint32_t value_bytes = (uint32_t)row->value.size;
    out_header[0] = row->is_put ? ROW_PUT : ROW_DELETE;
    out_header[1] = row->table;
    memcpy(out_header + 2, &key_bytes, sizeof(key_bytes));
    memcpy(out_header + 4, &value_bytes, sizeof(value_bytes));
}

Error log_row_next(Slice *body, LogRow *out, ErrorDetail *detail)
{
    uint16_t key_bytes = 0;
    uint32_t value_bytes = 0;
    bool is_row = body->size >= LOG_ROW_HEADER_BYTES;
    if (is_row) {
        memcpy(&key_bytes, body->bytes + 2, sizeof(key_bytes));
        memcpy(&value_bytes, body->bytes + 4, sizeof(value_bytes));
        uint64_t bytes = (uint64_t)LOG_ROW_HEADER_BYTES + key_bytes + value_bytes;
        uint8_t kind = body->bytes[0];
        is_row = key_bytes > 0 && bytes <= body->size &&
                 (kind == ROW_PUT || (kind == ROW_DELETE && value_bytes == 0));
    }
    if (!is_row) {
        return error_say(detail, ERROR_CORRUPT,
                         "a record of the log ends in %zu bytes that are no row", body->size);
    }
    const uint8_t *key = body->bytes + LOG_ROW_HEADER_BYTES;
    *out = (LogRow){
        .is_put = body->bytes[0] == ROW_PUT,
        .table = body->bytes[1],
        .key = slice(key, key_bytes),
        .value = slice(key + key_bytes, value_bytes),
    };
    *body = slice_skip(*body, LOG_ROW_HEADER_BYTES + (size_t)key_bytes + value_bytes);
    return ERROR_NONE;
}
