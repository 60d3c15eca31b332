// Damaged copies of a store, and the programs that meet them, each in a process of its own.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "truth.h"

enum { PLACE_BYTES_MAX = 512 };

typedef struct Place {
    char text[PLACE_BYTES_MAX];
} Place;

// A path in the directory of the test.
Place place(const char *name);

// Makes the directory `name` with these bytes as its data.mdb; removes what was there before.
void copy_write(const char *name, const uint8_t *bytes, size_t size);

// The same in the file that is there already, which keeps its walked.note: for damage of which no
// reset tells.
void copy_write_over(const char *name, const uint8_t *bytes, size_t size);

void tree_remove(const char *name);

// How a process ended.
typedef struct End {
    int code;   // -1: by a signal
    int signal; // 0: none; also of a process that it started to read the file
} End;

// Runs `tine ARGUMENTS…` (NULL-terminated) in the directory of the test.
End tine_run(const char *const *arguments);

typedef struct Reading {
    End end;
    bool is_open; // the store could be opened at all
    uint64_t direct_reads;
    Difference difference;
} Reading;

// Reads everything of the embedded store `name`.
Reading read_embedded(const char *name, const Truth *truth);

// Runs a tined on the sound store `name` until it has walked it.
void walk_by_tined(const char *name);

// Reads everything directly, beside a tined on the store `name`. `out_tined` is tined's end; it is
// stopped when everything was read.
Reading read_beside_tined(const char *name, const Truth *truth, End *out_tined);
