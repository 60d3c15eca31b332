// The engine's benchmark: one process, no sockets; request bytes in, reply bytes out.

#pragma once

#include "bench.h"

// The rows, one file a subject.
void bench_history(const Options *options);
void bench_append(const Options *options);
void bench_list(const Options *options);
void bench_part(const Options *options);
void bench_value(const Options *options);
