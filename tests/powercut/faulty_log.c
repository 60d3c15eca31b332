// The log takes back a segment that the rows still need, or reads what it did not write.

#include "faulty_log.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "kv/durable/flush.h"
#include "log/record.h"

typedef void Flushed(void *context, uint64_t position);

void __real_flush_on_flushed(DataFile *file, Flushed *flushed, void *context);
void __wrap_flush_on_flushed(DataFile *file, Flushed *flushed, void *context);
bool __real_log_record_read(Slice bytes, LogRecord *out);
bool __wrap_log_record_read(Slice bytes, LogRecord *out);

static atomic_int fault;

void log_fault(LogFault planted)
{
    atomic_store(&fault, planted);
}

void __wrap_flush_on_flushed(DataFile *file, Flushed *flushed, void *context)
{
    __real_flush_on_flushed(file, flushed, context);
    if (atomic_load(&fault) == LOG_TRIMS_EARLY) flushed(context, UINT64_MAX);
}

// Seals a copy of the record again, so that its chain is right, and says that it had the old one.
static bool read_anything(Slice bytes, LogRecord *out)
{
    enum { BODY_BYTES_AT = 8, CHAIN_AT = LOG_HEADER_BYTES - HASH_BYTES };
    static uint8_t copy[1 << 22]; // one thread opens a store
    uint32_t body_bytes;
    if (bytes.size < LOG_HEADER_BYTES || memcmp(bytes.bytes, "TLOG", 4) != 0) return false;
    memcpy(&body_bytes, bytes.bytes + BODY_BYTES_AT, sizeof(body_bytes));
    size_t size = LOG_HEADER_BYTES + (size_t)body_bytes;
    if (size > bytes.size || size > sizeof(copy)) return false;
    memcpy(copy, bytes.bytes, size);
    Hash chain = hash_pair(slice(copy, CHAIN_AT), slice(copy + LOG_HEADER_BYTES, body_bytes));
    memcpy(copy + CHAIN_AT, chain.bytes, HASH_BYTES);
    if (!__real_log_record_read(slice(copy, size), out)) return false;
    memcpy(out->chain.bytes, bytes.bytes + CHAIN_AT, HASH_BYTES);
    out->body = slice(bytes.bytes + LOG_HEADER_BYTES, body_bytes);
    return true;
}

bool __wrap_log_record_read(Slice bytes, LogRecord *out)
{
    if (atomic_load(&fault) == LOG_TAKES_ANYTHING) return read_anything(bytes, out);
    return __real_log_record_read(bytes, out);
}
