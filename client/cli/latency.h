// Latencies as Stats counts them: bucket i counts calls that took less than 2^i µs, and at least
// half of that.

#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns the time in µs below which this share of the calls (0.5, 0.99) stayed: the upper end of a
// bucket. 0 if there were no calls.
uint64_t latency_below_us(const uint64_t *buckets, size_t bucket_count, double share);
