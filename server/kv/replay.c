// Replay: brings the rows up to date with the log when the file is opened. A record says which rows
// were put and deleted, so no rule of the store is needed.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kv/commit_row.h"
#include "kv/durable/file_names.h"
#include "kv/durable/flush.h"
#include "kv/kv_log.h"
#include "log/log_file.h"
#include "os/directory.h"
#include "os/random.h"
#include "report/log.h"

enum { REPLAY_BYTES_MAX = 4 * 1024 * 1024 }; // of records in one transaction

typedef struct Replay {
    Kv *kv;
    KvTxn *txn;     // NULL: none is open
    uint64_t bytes; // of its records
} Replay;

static Error refuse_row(const LogRecord *record, const LogRow *row, ErrorDetail *detail)
{
    return error_say(detail, ERROR_CORRUPT,
                     "the log's record %" PRIu64 " has a row that this version does not know: "
                     "table %u, a key of %zu bytes, a value of %zu",
                     record->position, row->table, row->key.size, row->value.size);
}

static bool find_table(const Kv *kv, uint8_t number, KvTable *out)
{
    for (KvTable i = 0; i < kv->table_count; i++) {
        if (kv->tables[i].number != number) continue;
        *out = i;
        return true;
    }
    return false;
}

static Error apply_row(Replay *replay, const LogRecord *record, const LogRow *row,
                       ErrorDetail *detail)
{
    KvTable table;
    if (!find_table(replay->kv, row->table, &table) || row->key.size > KEY_BYTES_MAX ||
        row->value.size > VALUE_BYTES_MAX) {
        return refuse_row(record, row, detail);
    }
    bool found;
    if (row->is_put) return kv_put(replay->txn, table, row->key, row->value);
    return kv_delete(replay->txn, table, row->key, &found);
}

static Error commit(Replay *replay)
{
    Error error = replay->txn ? kv_commit(&replay->txn) : ERROR_NONE;
    replay->bytes = 0;
    return error;
}

static Error begin(Replay *replay, ErrorDetail *detail)
{
    Error error = kv_begin(replay->kv, /* is_write= */ true, detail, &replay->txn);
    // The sign of a new file is no row of the log.
    bool is_new = replay->kv->place.position == 0 && replay->kv->sign.table;
    return error || !is_new ? error : kv_put_sign(replay->txn);
}

static Error apply(void *context, const LogRecord *record, ErrorDetail *detail)
{
    Replay *replay = context;
    Error error = ERROR_NONE;
    if (replay->bytes >= REPLAY_BYTES_MAX) error = commit(replay);
    if (!error && !replay->txn) error = begin(replay, detail);
    Slice rest = record->body;
    while (!error && rest.size > 0) {
        LogRow row;
        error = log_row_next(&rest, &row, detail);
        if (!error) error = apply_row(replay, record, &row, detail);
    }
    replay->kv->place = log_record_place(record);
    replay->kv->log_key = record->key;
    replay->bytes += record->body.size;
    return error;
}

static Error read_place(Kv *kv, ErrorDetail *detail)
{
    KvTxn *txn;
    Error error = kv_begin(kv, /* is_write= */ false, detail, &txn);
    if (error) return error;
    CommitRow row;
    bool found;
    error = commit_row_get(txn, &found, &row);
    if (!error && found) {
        kv->place = row.place;
        kv->log_key = row.log_key;
    }
    kv_abort(&txn);
    return error;
}

// Moves the rows' place to the end of the log. The records between the two are void, but what a
// later start finds must follow the rows.
static Error move_to_end(Kv *kv, LogPlace end, ErrorDetail *detail)
{
    KvTxn *txn;
    Error error = kv_begin(kv, /* is_write= */ true, detail, &txn);
    if (error) return error;
    kv->place = end;
    txn->write_count++; // the commit row
    return kv_commit(&txn);
}

static uint64_t random_key(void)
{
    Random random;
    random_seed_system(&random);
    return random_next(&random) | 1;
}

static void on_flushed(void *context, uint64_t position)
{
    Kv *kv = context;
    kv->log->ops->trim(kv->log, position);
}

// The rows are complete now. Once they are flushed, the records of earlier runs are not needed.
static Error settle(Kv *kv, const LogFound *found, ErrorDetail *detail)
{
    bool is_moved = kv->place.position != found->end.position;
    Error error = is_moved ? move_to_end(kv, found->end, detail) : ERROR_NONE;
    bool is_changed = is_moved || found->record_count > 0;
    if (!error && is_changed) error = flush_commits(kv->file, detail);
    return error;
}

static bool path_of(const char *directory, char out[PATH_BYTES_MAX])
{
    return snprintf(out, PATH_BYTES_MAX, "%s/" KV_DIRECTORY_LOG, directory) < PATH_BYTES_MAX;
}

void kv_remove_log(const char *directory)
{
    char path[PATH_BYTES_MAX];
    if (path_of(directory, path)) directory_remove(path);
}

// Opens the log, and applies what it has behind the rows.
static Error replay(Kv *kv, const DataFileOptions *options, ErrorDetail *detail,
                    LogFound *out_found, Log **out_log)
{
    char path[PATH_BYTES_MAX];
    Replay replay = {.kv = kv};
    LogTaker taker = {apply, &replay};
    LogFileOptions log_options = {.directory = path,
                                  .key = kv->log_key,
                                  .flush_ms = options->flush_ms,
                                  .segment_bytes_min = options->log_segment_bytes,
                                  .segment_bytes_max = options->log_segment_bytes};
    if (!path_of(options->directory, path)) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "the path of the log is too long");
    }
    if (options->no_sync && access(path, F_OK) != 0) return ERROR_NONE; // as a new file is
    Error error = log_file_open(&log_options, kv->place, &taker, detail, out_found, out_log);
    if (!error) error = commit(&replay);
    kv_abort(&replay.txn);
    return error ? error : settle(kv, out_found, detail);
}

Error kv_log_open(Kv *kv, const DataFileOptions *options, ErrorDetail *detail)
{
    if (options->read_only) return ERROR_NONE;
    KvSeam seam = kv->seam;
    kv->seam = (KvSeam){NULL, NULL};
    LogFound found = {.is_cut = false};
    Log *log = NULL;
    Error error = read_place(kv, detail);
    if (!error) error = replay(kv, options, detail, &found, &log);
    kv->seam = seam;
    if (error || options->no_sync) {
        if (log) log->ops->close(log);
        if (!error) kv_remove_log(options->directory);
        return error;
    }
    if (found.record_count > 0 || found.is_cut) {
        log_write(LOG_INFO, "the log was replayed",
                  "records=%" PRIu64 " bytes=%" PRIu64 " was_cut=%d", found.record_count,
                  found.bytes, found.is_cut);
    }
    if (kv->log_key == 0) kv->log_key = random_key();
    kv->log = log;
    kv->is_relaxed = options->flush_ms > 0;
    log->ops->trim(log, found.end.position);
    flush_on_flushed(kv->file, on_flushed, kv);
    return ERROR_NONE;
}

void kv_log_close(Kv *kv)
{
    if (kv->log) kv->log->ops->close(kv->log);
    kv->log = NULL;
}
