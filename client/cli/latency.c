// Latencies.

#include "latency.h"

#include <stdio.h>

uint64_t latency_below_us(const uint64_t *buckets, size_t bucket_count, double share)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < bucket_count; i++) total += buckets[i];
    if (total == 0) return 0;
    for (size_t i = 0; i < bucket_count; i++) {
        seen += buckets[i];
        if ((double)seen >= share * (double)total) return UINT64_C(1) << i;
    }
    return UINT64_C(1) << (bucket_count - 1);
}

void latency_text(uint64_t us, char out[LATENCY_TEXT_BYTES])
{
    if (us < 1000) {
        snprintf(out, LATENCY_TEXT_BYTES, "%llu us", (unsigned long long)us);
    } else if (us < 1000 * 1000) {
        snprintf(out, LATENCY_TEXT_BYTES, "%.1f ms", (double)us / 1e3);
    } else {
        snprintf(out, LATENCY_TEXT_BYTES, "%.1f s", (double)us / 1e6);
    }
}
