// Finds the name that is nearest to an unknown one, for "did you mean".

#pragma once

#include <stddef.h>

typedef struct Nearest {
    const char *wanted; // borrowed
    const char *name;   // the nearest so far, if it is near enough; or NULL
    size_t distance;
} Nearest;

Nearest nearest_begin(const char *wanted);
void nearest_consider(Nearest *nearest, const char *name);
