// Ways: several ways of doing one thing, measured side by side in short turns.

#pragma once

#include "bench.h"

enum { WAYS_MAX = 10 };

typedef struct Way {
    const char *name;
    void (*call)(void *context);
    void *context;
    Samples samples;
    double median_us, p99_us; // after ways_run
} Way;

typedef struct Ways {
    Way ways[WAYS_MAX];
    size_t count;
} Ways;

// Returns its index.
size_t ways_add(Ways *ways, const char *name, void (*call)(void *context), void *context);

// In each round every way has a turn of `calls`; the first round does not count.
void ways_run(Ways *ways, size_t rounds, size_t calls);

// A note with the figures of each.
void ways_report(const Ways *ways);
void ways_free(Ways *ways);
