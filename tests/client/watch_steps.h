// Calls for tests of watches.

#pragma once

#include "harness.h"
#include "tine.h"

void watch_closep(TineWatch **watch);

TineWatch *watch_ok(Tine *tine, TineWatchOptions options);

// The next event, which must come in time and be of the watch's store; returns its sequence, and
// its type to `out_type`.
uint64_t next_ok(TineWatch *watch, char out_type[64]);
void next_is(TineWatch *watch, uint64_t sequence, const char *type);
void next_is_none(TineWatch *watch, int64_t timeout_ms);
