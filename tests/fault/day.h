// A scripted day of work: every write call, in an order in which each meets something to do.
//
// The clock stands still, so each id is the one before it plus one: a day gives the same store,
// byte for byte, however often its calls fail in between.

#pragma once

#include "fault.h"

typedef struct Day {
    Engine *engine;
    EngineOptions options; // of each open
    _Atomic int64_t now_ms;
    IdText root, agent, fork, other, source, source_fork;
    IdText first, answer, tool, large, open, memory, source_message, call;
} Day;

// On the heap, because the clock points into it. `fault` may be NULL.
Day *day_open(Fault *fault);
void day_reopen(Day *day);
void day_close(Day *day);

typedef enum DayStepKind {
    STEP_WRITE,
    STEP_READ,
    STEP_PURGE, // a write that slices follow
    STEP_QUIET, // no faults here: it moves the clock
} DayStepKind;

typedef struct DayStep {
    const char *name;
    Error (*run)(Day *day); // may be run again after it failed
    DayStepKind kind;
} DayStep;

extern const DayStep DAY_STEPS[];
extern const size_t DAY_STEP_COUNT;

// A call that writes nothing; the writer then works on purges.
Error day_nudge(Day *day);
// How many purges are pending. ERROR_… if the store cannot be read.
Error day_purges_pending(Day *day, uint64_t *out);
