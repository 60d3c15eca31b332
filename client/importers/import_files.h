// The files that an import reads: those that are named, and those below directories that are named.

#pragma once

#include <stdio.h>

#include "importers/importer.h"

typedef struct ImportFile {
    char *path;     // owned
    uint64_t bytes; // 0: not known
} ImportFile;

typedef struct ImportFiles {
    ImportFile *list; // owned
    size_t count, capacity;
} ImportFiles;

void import_files_free(ImportFiles *files);

// Adds a file, or all files in and below a directory whose names end in `suffix`, in the order of
// their paths. "-" is standard input. Symbolic links in directories are not followed. What cannot
// be read is reported and counts as a failed file. ERROR_OUT_OF_MEMORY.
MUST_USE Error import_files_add(ImportFiles *files, Importer *importer, const char *path,
                                const char *suffix);

// Imports one file; `name` is the file's name in messages. Returns a status code; what failed is
// reported.
typedef int (*ImportFileFunction)(Importer *importer, FILE *file, const char *name);

// Imports all files with `import_one` and counts them in the report. A file that fails does not
// stop the import; a store that fails does (importer_store_failed). Returns STATUS_OK, or the
// status code that stopped it.
MUST_USE int import_files_run(const ImportFiles *files, Importer *importer,
                              ImportFileFunction import_one);
