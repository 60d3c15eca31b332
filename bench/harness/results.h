// results.json: everything that a run has seen, for the report and the plots.
//
// {"version": 1, "machine": {…}, "date": …, "commit": …, "is_quick": …, "seconds": …,
//  "systems": [{"name", "about", "durability", "is_limit"}],
//  "workloads": [{"name", "about"}],
//  "cells": [{"workload", "case", "parameters": {…}, "system", "count", "median_us", …}]}
//
// A figure that there is not is null. A cell without figures says why in "skipped".

#pragma once

#include <stdio.h>

#include "figures.h"
#include "system.h"

enum { PARAMETERS_MAX = 5, CASE_BYTES_MAX = 128, SKIPPED_BYTES_MAX = 128 };

typedef struct Parameter {
    const char *name; // NULL: no more
    double value;
} Parameter;

// What was seen of one system in one case. NAN: not measured.
typedef struct Cell {
    const char *workload;
    char name[CASE_BYTES_MAX]; // of the case
    Parameter parameters[PARAMETERS_MAX];
    const System *system;
    char skipped[SKIPPED_BYTES_MAX]; // empty: measured
    Figures figures;
    double per_second;                   // calls, of all clients together
    double client_cpu_us, server_cpu_us; // a call
    double written_bytes;                // to disks, a call: by the client and the server
    double disk_bytes_per_message;
    double client_rss_kib, server_rss_kib;
} Cell;

typedef struct Results {
    Cell *cells;
    size_t count;
    double seconds; // that the run took
} Results;

// Adds a cell, empty but for its names.
Cell *results_add(Results *results, const char *workload, const Parameter *parameters,
                  const System *system);
void results_free(Results *results);

// "depth=8 messages=25"; "" without parameters.
void case_name(const Parameter *parameters, char *out, size_t out_bytes_max);

void json_string(FILE *file, const char *text);
void json_number(FILE *file, double value); // null: NAN and infinite ones

void results_write(const Results *results, bool is_quick, const char *path);
