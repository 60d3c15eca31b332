// The truth: what every read of a sound store says, and how other answers differ from it.
//
// A reply is taken apart into items: each message, session, memory and so on, as its encoded bytes.
// An item that the truth does not have at all was altered; one that it has in another reply only is
// misplaced; one that is missing is absent.

#pragma once

#include <stdint.h>

#include "tine.h"

typedef struct Truth Truth;

typedef struct Difference {
    uint64_t replies;   // that came
    uint64_t refused;   // calls that were answered with an error other than NOT_FOUND
    uint64_t altered;   // items that the truth does not have
    uint64_t misplaced; // items that it has in another reply
    uint64_t absent;    // items that were missing from replies, and calls answered with NOT_FOUND
} Difference;

// Reads everything. The caller frees it with truth_free.
Truth *truth_read(Tine *tine);
void truth_free(Truth *truth);

// Reads everything again, in a process of its own or not. Adds to `out` as it goes on, so that what
// was counted before a signal is there.
void truth_compare(const Truth *truth, Tine *tine, volatile Difference *out);
