// Finding files and importing one after the other.

#include "importers/import_files.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void import_files_free(ImportFiles *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->list[i].path);
    free(files->list);
    *files = (ImportFiles){0};
}

static Error add_file(ImportFiles *files, Importer *importer, const char *path,
                      const struct stat *status)
{
    if (files->count == files->capacity) {
        size_t capacity = files->capacity > 0 ? files->capacity * 2 : 64;
        ImportFile *list = realloc(files->list, capacity * sizeof(*list));
        if (!list) return ERROR_OUT_OF_MEMORY;
        files->list = list;
        files->capacity = capacity;
    }
    ImportFile *file = &files->list[files->count];
    *file = (ImportFile){.path = strdup(path)};
    if (!file->path) return ERROR_OUT_OF_MEMORY;
    if (status && S_ISREG(status->st_mode)) file->bytes = (uint64_t)status->st_size;
    files->count++;
    importer->report.files_total++;
    importer->report.bytes_total += file->bytes;
    return ERROR_NONE;
}

static void fail_file(Importer *importer, const char *path, int error_number)
{
    importer->report.files_total++;
    importer->report.files_failed++;
    import_report_say(&importer->report, "cannot read %s: %s", path, strerror(error_number));
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t size = strlen(name), suffix_size = strlen(suffix);
    return size > suffix_size && strcmp(name + size - suffix_size, suffix) == 0;
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static Error add_below(ImportFiles *files, Importer *importer, FTS *tree, const char *suffix)
{
    for (FTSENT *at; (at = fts_read(tree)) != NULL;) {
        bool is_unreadable =
            at->fts_info == FTS_DNR || at->fts_info == FTS_ERR || at->fts_info == FTS_NS;
        if (is_unreadable) fail_file(importer, at->fts_path, at->fts_errno);
        if (at->fts_info != FTS_F || !has_suffix(at->fts_name, suffix)) continue;
        Error error = add_file(files, importer, at->fts_path, at->fts_statp);
        if (error) return error;
    }
    return ERROR_NONE;
}

static Error add_directory(ImportFiles *files, Importer *importer, char *path, const char *suffix)
{
    char *const roots[] = {path, NULL};
    size_t count = files->count, failed = importer->report.files_failed;
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, compare_names);
    if (!tree) {
        fail_file(importer, path, errno);
        return ERROR_NONE;
    }
    Error error = add_below(files, importer, tree, suffix);
    fts_close(tree);
    bool is_empty = files->count == count && importer->report.files_failed == failed;
    if (error || !is_empty) return error;
    importer->report.files_total++;
    importer->report.files_failed++;
    import_report_say(&importer->report, "%s: no *%s file in it or below", path, suffix);
    return ERROR_NONE;
}

Error import_files_add(ImportFiles *files, Importer *importer, const char *path, const char *suffix)
{
    struct stat status;
    if (strcmp(path, "-") == 0) return add_file(files, importer, path, NULL);
    if (stat(path, &status) != 0) {
        fail_file(importer, path, errno);
        return ERROR_NONE;
    }
    if (!S_ISDIR(status.st_mode)) return add_file(files, importer, path, &status);
    return add_directory(files, importer, (char *)(uintptr_t)path, suffix);
}

static int import_file(Importer *importer, const char *path, ImportFileFunction import_one)
{
    if (strcmp(path, "-") == 0) return import_one(importer, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file) {
        return importer_fail(importer, STATUS_INVALID_ARGUMENT, "cannot read %s: %s", path,
                             strerror(errno));
    }
    int status = import_one(importer, file, path);
    fclose(file);
    return status;
}

int import_files_run(const ImportFiles *files, Importer *importer, ImportFileFunction import_one)
{
    ImportReport *report = &importer->report;
    for (size_t i = 0; i < files->count; i++) {
        uint64_t bytes_done = report->bytes_done;
        int status = import_file(importer, files->list[i].path, import_one);
        if (status) report->files_failed++;
        if (importer_store_failed(status)) return status;
        if (!status) report->files_imported++;
        report->bytes_done = bytes_done + files->list[i].bytes;
    }
    return STATUS_OK;
}
