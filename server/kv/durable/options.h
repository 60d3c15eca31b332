// What a store's files are opened with. Safe to include anywhere: it does not include lmdb.h.
//
// server/kv/durable keeps one store's files: it opens them, makes commits durable, and puts them in
// order after a power cut. It knows no table and no row. server/kv is built on it, so nothing here
// includes a header of server/kv itself.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kv/durable/page_walk_options.h"

// data.mdb and lock.mdb as LMDB has them open, with what makes their commits durable.
typedef struct DataFile DataFile;
typedef struct Flusher Flusher; // of a file that is open for writing: flush.c

typedef struct DataFileOptions {
    const char *directory; // must exist; the file is directory/data.mdb
    size_t map_bytes;      // 0: sized from the disk, so that the disk is full before the map
    unsigned readers_max;  // 0: READERS_MAX
    bool no_sync;          // only for ephemeral stores: a crash of the host may corrupt the file
    bool read_only;        // directory/data.mdb must exist
    // Not 0: a relaxed store. Its log is flushed in the background after this time; a power cut
    // may take what came later. 0: each commit is in the log on the disk when it returns.
    unsigned flush_ms;
    unsigned flush_data_ms;     // until data.mdb is flushed; 0: FLUSH_DATA_MS. For tests
    uint64_t log_segment_bytes; // of each segment of the log; 0: they grow. For tests
    bool is_beside;      // read_only, while another process has it open or will: locks are required
    bool owns_directory; // no other process has it open: what a power cut left may be put in order
    unsigned long
        file_system_type; // statfs's f_type of the directory; 0: ask the kernel. For tests
    const char *boot_id;  // of this run of the kernel; NULL: ask the kernel. For tests
    // The whole file is walked before LMDB reads it, with .found and .context of this. NULL: only a
    // quick walk. Borrowed until the open returns.
    const PageWalkOptions *walk;
    bool accepts_damage; // no walk; for a copy byte by byte
} DataFileOptions;
