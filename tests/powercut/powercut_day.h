// A day of work on a store, recorded: appends, messages of 1 MiB, forks, deletes, purges, restarts,
// deaths of the process, a compaction, and half of the days begin with the migration of a file that
// format 1's program wrote. A relaxed day is at times not relaxed. Writes go on while a flush is
// under way. On half of the days one flush fails, on three of four data.mdb is flushed as often as
// a relaxed log, and the log's segments are small. After a cut another day may go on.

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
    bool is_without_failures; // no flush fails
    unsigned flush_data_ms;   // 0: data.mdb is flushed when the store is opened and closed
    uint64_t segment_bytes;   // of the log's segments; 0: they grow
    char root[512];           // the store is root/store
    const char *boot_id;
    IdText session; // the first write makes it
    History history;
    // What was written until a flush failed and the store was opened as it was before; of the cuts
    // before the record `taken_back_at` (0: it was not).
    History before;
    size_t taken_back_at;
    bool has_failed_flush;
    size_t first_cut; // what was recorded before is on the disk
    size_t opened_at; // the store is open for the first time
    size_t held;      // writes that the day began with
    size_t *required; // so many writes must be there after a cut before this record
    Recording recording;
} Day;

// Marks of the record, each of so many writes and the number of the newest transaction then. With
// the first bit, all of them are on the disk by promise; with the second, the store was opened
// just before. With the third, it is about to be, which may give transactions' numbers anew; that
// mark is of nothing else.
#define DAY_FLUSHED (UINT64_C(1) << 63)
#define DAY_OPENED (UINT64_C(1) << 62)
#define DAY_OPENING (UINT64_C(1) << 61)
enum { DAY_TXN_BITS = 32 };

// On the heap. Its record is of the whole day, from before there is a store.
Day *day_run(DayMode mode, uint64_t seed, size_t write_count);
// The same with the mode, the seed, the flushes and the segments of `options`.
Day *day_run_as(const Day *options, size_t write_count);
// The day after a cut of another one: disk_write_image has made its `root`. NULL: of the other day
// nothing is left.
Day *day_run_after(const Day *day, size_t cut, const char *root, size_t write_count);
void day_free(Day *day);

// Opens the store as `mode` does, on a machine that was started anew if `boot_id` is another.
Engine *day_engine(DayMode mode, const char *directory, const char *boot_id);
// A relaxed store that flushes nothing by itself, for a while.
Engine *day_engine_unhurried(const char *directory, const char *boot_id);

// What was written until the cut, and perhaps after it.
const History *day_history(const Day *day, size_t cut);

// Fills day->required (required.c).
void day_find_required(Day *day);

// How many of its writes the store holds, by its newest event.
size_t day_held(const History *history, Engine *engine);

// Of the newest event. False: the store has closed itself.
bool day_sequence(Engine *engine, uint64_t *out);
