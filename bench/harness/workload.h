// A workload: work that every system is asked to do, case by case.
//
// Each is one file in bench/workloads that says WORKLOAD(name, about) and runs its cases by
// compare() (run.h). Adding one is one file.

#pragma once

#include <stddef.h>

typedef struct Run Run;

typedef struct Workload {
    const char *name;
    const char *about; // one sentence
    unsigned order;
    void (*run)(Run *run);
} Workload;

#define WORKLOAD(symbol)                                                                           \
    static const Workload workload_##symbol;                                                       \
    __attribute__((constructor)) static void register_workload_##symbol(void)                      \
    {                                                                                              \
        workload_register(&workload_##symbol);                                                     \
    }                                                                                              \
    static const Workload workload_##symbol

enum { WORKLOADS_MAX = 32 };

void workload_register(const Workload *workload);
size_t workload_count(void);
const Workload *workload_at(size_t index); // by order, then name
