// Latencies as Stats counts them: bucket i holds what took less than 2^i µs and not less than half
// of it.

#pragma once

#include <stddef.h>
#include <stdint.h>

// The time in microseconds that this share of the calls (0.5, 0.99) stayed below: the upper end of
// the bucket that it falls into. 0 when there were none.
uint64_t latency_below_us(const uint64_t *buckets, size_t bucket_count, double share);
