// Store time: the clock that decides how old operations and events are.
//
// It counts the time that passes on the machine of the process that writes, suspended time
// included. Steps of the wall clock do not move it. It is kept in the store, and each write
// transaction advances it. It begins at the wall time at which the store was made, so both agree as
// long as nobody sets the wall clock.
//
// A process that opens the store counts the time since the last write too: exactly if the machine
// has run since then, else by the wall clock, but at most RESET_STEP_MS_MAX and never backward.
// Counting too little is safe: operations and events are then kept longer.

#pragma once

#include "base/hash.h"
#include "os/clock.h"

typedef struct StoreTime {
    int64_t now_ms;  // store time, as of the two readings below
    int64_t boot_ms; // what the writer's clocks showed then
    int64_t wall_ms; //
    Hash boot;       // of the boot ID of the writer's machine; zero: not known
} StoreTime;

// Returns the time of a new store.
StoreTime store_time_begin(const Clock *clock, Hash boot);

// Moves a time that was read from the store to this process's clocks. Call it once, before
// store_time_advance.
void store_time_resume(StoreTime *time, const Clock *clock, Hash boot);

// Adds what has passed since the readings in `time`.
void store_time_advance(StoreTime *time, const Clock *clock);
