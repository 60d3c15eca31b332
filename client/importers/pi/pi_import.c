// The steps of an import: read the file, find or make its session, add the entries, finish.

#include "importers/pi/pi_import.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_add.h"
#include "importers/pi/pi_session.h"
#include "text/json.h"
#include "text/json_walk.h"

static void report_problems(PiRun *run)
{
    const PiFile *file = &run->file;
    ImportReport *report = &run->importer->report;
    for (size_t i = 0; i < file->problem_count && i < PI_PROBLEMS_MAX; i++) {
        import_report_say(report, "%s: line %zu: %s", run->name, file->problems[i].line,
                          file->problems[i].what);
    }
    if (file->problem_count > PI_PROBLEMS_MAX) {
        import_report_say(report, "%s: and %zu more of such lines", run->name,
                          file->problem_count - PI_PROBLEMS_MAX);
    }
}

// Does what depends on all entries. The last entry's original is stored after everything else:
// where it is found, nothing is left to do, even if this import is interrupted.
static int finish(PiRun *run)
{
    int code = run->is_finished ? STATUS_OK : pi_session_move_head(run);
    if (!code && !run->is_finished) code = pi_session_update(run);
    return code || run->file.count == 0 ? code : pi_run_put_original(run, run->file.count - 1);
}

// The last stored entry's original reached to the end of the file, which may have grown since.
static void renew_last(PiRun *run)
{
    uint32_t last = run->file.count;
    while (last > 0 && !*run->file.entries[last - 1].store_id)
        last--;
    if (last > 0) run->file.entries[last - 1].has_original = false;
}

static int import_opened(PiRun *run)
{
    int code = pi_session_find_or_make(run);
    if (!code) {
        renew_last(run);
        Error error = batch_sender_open(&run->sender, run->importer, run->session);
        if (error) return pi_run_fail(run, error, NULL);
        run->batch = batch_sender_filling(&run->sender);
        code = pi_add_all(run);
    }
    batch_sender_close(&run->sender);
    return code ? code : finish(run);
}

// Returns the file, or, if it cannot be read twice, a copy of it that can; NULL: see errno.
static FILE *seekable(FILE *file)
{
    char bytes[64 * 1024];
    if (fseeko(file, 0, SEEK_SET) == 0) return file;
    FILE *copy = tmpfile();
    if (!copy) return NULL;
    size_t size;
    do {
        size = fread(bytes, 1, sizeof(bytes), file);
    } while (size > 0 && fwrite(bytes, 1, size, copy) == size);
    if (size == 0 && !ferror(file) && fseeko(copy, 0, SEEK_SET) == 0) return copy;
    fclose(copy);
    return NULL;
}

// Batches and requests of megabytes come and go. What malloc gives back to the kernel each time is
// zeroed by it each time, which took as long as mapping the entries.
static void keep_freed_memory(void)
{
    enum { KEPT_BYTES_MAX = 64 * 1024 * 1024, MAPPED_BYTES_MIN = 32 * 1024 * 1024 };
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

static int import_seekable(PiRun *run, FILE *file)
{
    ErrorDetail detail = {{0}};
    arena_init(&run->arena, BATCH_ARENA_BYTES);
    Error error = pi_file_open(&run->file, file, &detail);
    int code = error ? pi_run_fail(run, error, &detail) : STATUS_OK;
    if (!code) {
        report_problems(run);
        snprintf(run->version, sizeof(run->version), "%u", run->file.version);
        code = import_opened(run);
    }
    pi_file_close(&run->file);
    arena_free(&run->arena);
    pi_model_free(&run->model);
    return code;
}

int pi_import(Importer *importer, FILE *file, const char *name)
{
    keep_freed_memory();
    FILE *readable = seekable(file);
    if (!readable) {
        return importer_fail(importer, STATUS_INVALID_ARGUMENT, "cannot read %s twice: %s", name,
                             strerror(errno));
    }
    PiRun *run = calloc(1, sizeof(*run));
    int code = STATUS_RESOURCE_EXHAUSTED;
    if (run) {
        run->importer = importer;
        run->name = name;
        code = import_seekable(run, readable);
    }
    if (!run) (void)importer_fail(importer, STATUS_RESOURCE_EXHAUSTED, "out of memory");
    if (readable != file) fclose(readable);
    free(run);
    return code;
}

bool pi_is_session(Slice line)
{
    enum { TYPE, ID, COUNT };
    static const char *const NAMES[] = {"type", "id"};
    Slice values[COUNT], json = line_json(line, /* is_first= */ true);
    if (!json_is_object(json) || !json_is_well_formed(json)) return false;
    if (json_members(json, NAMES, COUNT, values, NULL)) return false;
    return json_key_is(values[TYPE], "session") && json_is_text(values[ID]);
}
