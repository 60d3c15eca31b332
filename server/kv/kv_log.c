// The records of write transactions. One transaction at a time writes, so their rows gather in one
// buffer of the Kv.

#include "kv/kv_log.h"

#include <string.h>

#include "kv/durable/flush.h"
#include "os/clock.h"

void kv_log_begin(KvTxn *txn)
{
    Kv *kv = txn->kv;
    kv->log_body.start = kv->log_body.end = 0;
}

Error kv_log_note(KvTxn *txn, const LogRow *row, size_t *out_mark)
{
    Buffer *body = &txn->kv->log_body;
    size_t size = LOG_ROW_HEADER_BYTES + row->key.size + row->value.size;
    uint8_t *bytes;
    Error error = buffer_reserve(body, size, &bytes);
    if (error) return error;
    *out_mark = buffer_size(body);
    log_row_begin(row, bytes);
    bytes += LOG_ROW_HEADER_BYTES;
    memcpy(bytes, row->key.bytes, row->key.size);
    if (row->value.size > 0) memcpy(bytes + row->key.size, row->value.bytes, row->value.size);
    buffer_grow(body, size);
    return ERROR_NONE;
}

void kv_log_forget(KvTxn *txn, size_t mark)
{
    buffer_truncate(&txn->kv->log_body, mark);
}

static void seal(Kv *kv, LogKind kind, Slice body, KvLogSeal *out)
{
    Clock clock = clock_system();
    out->record = (LogRecord){
        .kind = kind,
        .position = kv->place.position + 1,
        .wall_ms = clock_now_ms(&clock),
        .flushed_through = atomic_load(&kv->log->flushed),
        .key = kv->log_key,
        .previous = kv->place.chain,
        .body = body,
    };
    log_record_seal(&out->record, out->header);
}

void kv_log_seal(KvTxn *txn, KvLogSeal *out)
{
    seal(txn->kv, LOG_BATCH, buffer_slice(&txn->kv->log_body), out);
}

Error kv_log_store(Kv *kv, const KvLogSeal *record, ErrorDetail *detail)
{
    Error error = kv->log->ops->append(kv->log, &record->record, record->header, detail);
    if (error) return error;
    kv->place = log_record_place(&record->record);
    return kv->is_relaxed ? ERROR_NONE : kv->log->ops->flush(kv->log, detail);
}

// A VOID that is lost with the power would bring the record back, so it is flushed in any mode.
Error kv_log_take_back(Kv *kv, ErrorDetail *detail)
{
    KvLogSeal record;
    seal(kv, LOG_VOID, (Slice){NULL, 0}, &record);
    Error error = kv->log->ops->append(kv->log, &record.record, record.header, detail);
    if (!error) error = kv->log->ops->flush(kv->log, detail);
    if (!error) kv->place = log_record_place(&record.record);
    return error;
}

Error kv_flush(Kv *kv, ErrorDetail *detail)
{
    if (data_file_is_of_parent(kv->file)) return data_file_refuse_child(detail);
    return kv->log ? kv->log->ops->flush(kv->log, detail) : ERROR_NONE;
}

bool kv_has_failed(const Kv *kv)
{
    return flush_has_failed(kv->file) || (kv->log && atomic_load(&kv->log->has_failed));
}

void kv_tell_failure(const Kv *kv, ErrorDetail *detail)
{
    if (flush_has_failed(kv->file)) {
        flush_tell_failure(kv->file, detail);
    } else {
        *detail = kv->log->failure;
    }
}

void kv_flush_stats(const Kv *kv, KvFlushStats *out)
{
    *out = (KvFlushStats){.is_relaxed = kv->is_relaxed};
    if (!kv->log) return;
    uint64_t flushed = atomic_load(&kv->log->flushed), appended = atomic_load(&kv->log->appended);
    uint64_t flushed_bytes = atomic_load(&kv->log->flushed_bytes);
    uint64_t bytes = atomic_load(&kv->log->appended_bytes);
    int64_t oldest_ns = atomic_load(&kv->log->oldest_ns);
    if (appended <= flushed) return;
    out->commits = appended - flushed;
    if (bytes > flushed_bytes) out->bytes = bytes - flushed_bytes;
    if (oldest_ns > 0) out->oldest_ms = (clock_monotonic_ns() - oldest_ns) / 1000000;
}
