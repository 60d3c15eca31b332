// Evaluates latencies.

#include "latency.h"

uint64_t latency_below_us(const uint64_t *buckets, size_t bucket_count, double share)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < bucket_count; i++)
        total += buckets[i];
    if (total == 0) return 0;
    for (size_t i = 0; i < bucket_count; i++) {
        seen += buckets[i];
        if ((double)seen >= share * (double)total) return UINT64_C(1) << i;
    }
    return UINT64_C(1) << (bucket_count - 1);
}
