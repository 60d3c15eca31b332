// Walks at the opening, and beside writers.

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
#include "kv/durable/walk_note.h"

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

static PageWalkOptions walk_options_make(const DataFileOptions *options, First *first)
{
    return (PageWalkOptions){
        .is_quick = !first->asked,
        .is_for_reading = options->read_only,
        .found = keep_first,
        .context = first,
    };
}

static Error judge(const DataFileOptions *options, const First *first, const PageWalkResult *result,
                   ErrorDetail *detail)
{
    if (result->finding_count == 0) return ERROR_NONE;
    return error_say(detail, ERROR_CORRUPT, "%s/" KV_FILE_DATA " is damaged in %llu places: %s%s",
                     options->directory, (unsigned long long)result->finding_count, first->text,
                     options->walk ? "" : "; tine check names all");
}

Error file_walk_unopened(const DataFileOptions *options, ErrorDetail *detail)
{
    struct stat status;
    First first = {.asked = options->walk};
    PageWalkResult result = {.finding_count = 0};
    PageWalkOptions walk_options = walk_options_make(options, &first);
    int file = file_at_open(options->directory, KV_FILE_DATA, O_RDONLY);
    if (file < 0 && errno == ENOENT) return ERROR_NONE;
    if (file < 0) return lmdb_fail(detail, errno, "open", options->directory, KV_FILE_DATA);
    bool has_pages = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    walk_options.file = file;
    // LMDB says what anything else is.
    Error error = has_pages ? page_walk(&walk_options, detail, &result) : ERROR_NONE;
    close(file);
    return error ? error : judge(options, &first, &result, detail);
}

// Walks the state that a reader sees now. A writer that commits twice at the wrong moment takes its
// meta page away; then there is another state.
static Error walk_held(DataFile *file, PageWalkOptions *options, ErrorDetail *detail,
                       PageWalkResult *out)
{
    enum { TRIES = 100 };
    MDB_txn *reader;
    Error error = ERROR_UNAVAILABLE;
    int code = mdb_env_get_fd(file->lmdb, &options->file);
    for (int i = 0; code == 0 && error == ERROR_UNAVAILABLE && i < TRIES; i++) {
        code = mdb_txn_begin(file->lmdb, NULL, MDB_RDONLY, &reader);
        if (code) break;
        options->txn_id = mdb_txn_id(reader);
        error = page_walk(options, detail, out);
        mdb_txn_abort(reader);
    }
    return code ? lmdb_fail(detail, code, "read", file->directory, KV_FILE_DATA) : error;
}

Error file_walk_opened(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    First first = {.asked = options->walk};
    PageWalkResult result;
    PageWalkOptions walk_options = walk_options_make(options, &first);
    Error error = walk_held(file, &walk_options, detail, &result);
    if (error) return options->walk ? error : ERROR_NONE;
    return judge(options, &first, &result, detail);
}

bool file_walk_is_due(const DataFile *file)
{
    return atomic_load(&file->is_walk_due);
}

void file_walk_note_use(DataFile *file)
{
    walk_note_begin(file);
}

Error file_walk_now(DataFile *file, const PageWalkOptions *asked, ErrorDetail *detail,
                    PageWalkResult *out)
{
    PageWalkOptions options = *asked;
    Error error = walk_held(file, &options, detail, out);
    bool is_sound = !error && out->finding_count == 0 && !out->is_cancelled;
    if (is_sound) walk_note_done(file);
    return error;
}
