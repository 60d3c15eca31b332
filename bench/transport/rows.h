// The benchmark over sockets: tined as users build it, in a process of its own, and libtine in this
// one; its peers the same way.

#pragma once

#include "bench.h"
#include "peers.h"

// The rows, one file a subject.
void bench_get_session(const Options *options);
void bench_append(const Options *options);
void bench_history(const Options *options);
void bench_hostile(const Options *options);
void bench_idle(const Options *options);
void bench_cli(const Options *options);

// This tined and another one, and nothing else: what a change has done.
void bench_against(const Options *options);
