// Walks at the opening.

#include "kv/durable/file_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/page_walk.h"

typedef struct First { // keeps the first finding, and passes all on
    const PageWalkOptions *asked;
    char text[PAGE_FINDING_BYTES_MAX];
} First;

static void keep_first(void *context, const PageFinding *finding)
{
    First *first = context;
    if (!first->text[0]) snprintf(first->text, sizeof(first->text), "%s", finding->text);
    if (first->asked && first->asked->found) first->asked->found(first->asked->context, finding);
}

static const char *pass_row(void *context, Slice key, Slice value)
{
    First *first = context;
    return first->asked->row(first->asked->context, key, value);
}

static Error walk(int file, uint64_t txn_id, const DataFileOptions *options, ErrorDetail *detail)
{
    const PageWalkOptions *asked = options->walk;
    First first = {.asked = asked};
    PageWalkResult result;
    PageWalkOptions walk_options = {
        .file = file,
        .txn_id = txn_id,
        .is_quick = !asked,
        .found = keep_first,
        .row = asked && asked->row ? pass_row : NULL,
        .context = &first,
    };
    Error error = page_walk(&walk_options, detail, &result);
    if (error || result.finding_count == 0) return error;
    return error_say(detail, ERROR_CORRUPT, "%s/" KV_FILE_DATA " is damaged in %llu places: %s%s",
                     options->directory, (unsigned long long)result.finding_count, first.text,
                     asked ? "" : "; tine check names all");
}

Error file_walk_unopened(const DataFileOptions *options, ErrorDetail *detail)
{
    struct stat status;
    int file = file_at_open(options->directory, KV_FILE_DATA, O_RDONLY);
    if (file < 0 && errno == ENOENT) return ERROR_NONE;
    if (file < 0) return lmdb_fail(detail, errno, "open", options->directory, KV_FILE_DATA);
    bool has_pages = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    Error error = has_pages ? walk(file, 0, options, detail) : ERROR_NONE; // LMDB says what it is
    close(file);
    return error;
}

Error file_walk_opened(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    enum { TRIES = 100 };
    int data_file;
    MDB_txn *reader;
    Error error = ERROR_UNAVAILABLE;
    int code = mdb_env_get_fd(file->lmdb, &data_file);
    // A writer that commits twice at the wrong moment takes the meta page of the state away.
    for (int i = 0; code == 0 && error == ERROR_UNAVAILABLE && i < TRIES; i++) {
        code = mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, &reader);
        if (code) break;
        error = walk(data_file, mdb_txn_id(reader), options, detail);
        mdb_txn_abort(reader);
    }
    bool is_left_out = !options->walk && (code || error == ERROR_UNAVAILABLE);
    if (is_left_out) return ERROR_NONE;
    return code ? lmdb_fail(detail, code, "read", options->directory, KV_FILE_DATA) : error;
}
