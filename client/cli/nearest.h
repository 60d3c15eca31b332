// "Did you mean": the name that is nearest to one that does not exist.

#pragma once

#include <stddef.h>

typedef struct Nearest {
    const char *wanted; // borrowed
    const char *name;   // the nearest so far, near enough to be meant; or NULL
    size_t distance;
} Nearest;

Nearest nearest_begin(const char *wanted);
void nearest_consider(Nearest *nearest, const char *name);
