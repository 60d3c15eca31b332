// walked.note: says whether all pages of data.mdb must be walked, because the machine may have gone
// down since they were walked last.
//
// The note has the boot in which the file was opened for writing, and whether it was closed. A file
// that was opened in another boot and not closed met a reset. So does one without a note, for all
// that is known: it was put here by hand, or by an older version. A new file needs no walk.
//
// A note that cannot be written is removed, which costs one walk that was not needed.

#pragma once

#include "kv/durable/options.h"

// Call it after LMDB opened the file for writing. Reads the note, and sets file->is_walk_due.
void walk_note_read(DataFile *file, const DataFileOptions *options);

// Notes that the file is in use, before anything is written to a store that is used as it is.
void walk_note_begin(DataFile *file);

// Call it after a walk that found nothing.
void walk_note_done(DataFile *file);

// Call it before the file is closed.
void walk_note_end(DataFile *file);
