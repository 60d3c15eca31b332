// Many writers at once on an engine in this process, without sockets.
//
// A writer is a session with one append in flight. A few threads keep them so: each submits again
// what has been answered, as a daemon's connections do.

#pragma once

#include "bench.h"

enum { WRITERS = 64 };

typedef struct Writers Writers;

// `sessions` are WRITERS ones.
Writers *writers_open(const IdText *sessions, bool has_operation_ids);
void writers_close(Writers *writers);

// Each appends `count` times. Returns the appends a second.
double writers_run(Writers *writers, Engine *engine, size_t count);
