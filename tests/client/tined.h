// A real tined, in a process of its own, with its store in the test's directory.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef struct Tined {
    pid_t pid; // 0: it does not run
    char data[512];
    char socket[256];
    char url[300];     // ipc://
    char nng_url[300]; // nng+ipc://
    char tcp_url[64];
    char token_file[512];
    const char *events_max;  // NULL: as many as the default says
    const char *flush_every; // NULL: the store is not relaxed
} Tined;

extern const char TINED_TOKEN[];

// Starts it, on what an earlier one left. Returns when it serves.
void tined_start(Tined *tined);

// Ends it with SIGKILL, or with SIGTERM and an exit code of 0.
void tined_kill(Tined *tined);
void tined_stop(Tined *tined);

// Kills it if it runs: for CLEANUP.
void tined_end(Tined *tined);
