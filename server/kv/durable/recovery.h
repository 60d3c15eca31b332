// Recovery: what a power cut, or the death of a process, has left of a store is put in order before
// LMDB opens it. flush.h has the idea.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Puts the state of the last flush back if the machine went down since; the log has what came after
// it. Sets file->is_set_back. Empties a data.mdb whose making was cut off. ERROR_CORRUPT:
// flushed.mdb is damaged, or data.mdb lacks what was flushed. ERROR_UNAVAILABLE: something has to
// be put back, and the caller does not own the directory, or another process still reads (after a
// wait). ERROR_IO, ERROR_STORE_FULL.
MUST_USE Error recovery_run(DataFile *file, const DataFileOptions *options, ErrorDetail *detail);

// Returns whether the store in this directory was not closed before the machine went down, so that
// only its log has the newest commits until a writer opens it. `boot_id` as in DataFileOptions.
bool recovery_is_due(const char *directory, const char *boot_id);

// Returns whether a power cut or a disk error took the store back, until recovery_forget_set_back:
// acknowledged commits may be gone, and what follows is another history.
bool recovery_is_set_back(const DataFile *file);

// Forgets it, after the commit that has dealt with it. Both are on the disk when this returns,
// unless flush_has_failed.
void recovery_forget_set_back(DataFile *file, const char *directory);
