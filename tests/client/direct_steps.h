// What tests of direct reads share.

#pragma once

#include <sys/types.h>

#include "steps.h"
#include "tined.h"

enum { LARGE_BYTES = 100 * 1000 }; // of a message of many pieces

Tine *open_direct(const Tined *tined);
TineClientStats stats_of(Tine *tine);

// No fallback happened but this one, so often. TINE_FALLBACK_COUNT: none at all.
void check_only(Tine *tine, TineFallback fallback, uint64_t count);

// What the server says of itself: the caller's.
Tine__V1__StatsResponse *server_stats(Tine *tine);

// A process in the middle of a read, standing still.
pid_t reader_in_a_read(const Tined *tined, const char *session);

// Of a child, which is waited for; -1: it did not exit by itself.
int exit_code_of(pid_t child);
