// A day of work on a store, recorded: appends, messages of 1 MiB, forks, deletes, purges, restarts,
// a compaction, and half of the days begin with the migration of a file that format 1's program
// wrote. On half of the days one flush fails.

#pragma once

#include "crash_child.h"
#include "crash_model.h"
#include "record.h"

enum { DAY_WRITES_MAX = 400 };

typedef enum DayMode { DAY_SYNC, DAY_RELAXED, DAY_UNSAFE } DayMode;

typedef struct History {
    CrashRecord writes[DAY_WRITES_MAX];
    size_t write_count;
    uint64_t sequences[DAY_WRITES_MAX + 1]; // of the newest event after so many writes
} History;

typedef struct Day {
    DayMode mode;
    uint64_t seed;
    bool has_fixture;
    char root[512]; // the store is root/store
    IdText session; // the first write makes it
    History history;
    // What was written until a flush failed and the store was opened as it was before; of the cuts
    // before the record `taken_back_at` (0: it was not).
    History before;
    size_t taken_back_at;
    bool has_failed_flush;
    Recording recording;
} Day;

// Marks of the record: so many writes are acknowledged; with the bit, they were flushed on demand.
#define DAY_FLUSHED (UINT64_C(1) << 63)

// On the heap. Its record is of the whole day, from before there is a store.
Day *day_run(DayMode mode, uint64_t seed, size_t write_count);
void day_free(Day *day);

// Opens the store as `mode` does, on a machine that was started anew if `boot_id` is another.
Engine *day_engine(DayMode mode, const char *directory, const char *boot_id);

// What was written until the cut, and perhaps after it.
const History *day_history(const Day *day, size_t cut);

// How many of these writes the disk must have after a cut.
size_t day_required(const Day *day, size_t cut);

// Of the newest event. False: the store has closed itself.
bool day_sequence(Engine *engine, uint64_t *out);
