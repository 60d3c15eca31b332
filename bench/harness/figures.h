// Figures: what is told of many samples.

#pragma once

#include "bench.h"

enum { QUANTILE_COUNT = 15 };
extern const double QUANTILES[QUANTILE_COUNT];

// Microseconds. A quantile is the smallest sample that at least that share of all does not exceed,
// so it is one that was really seen. `p99_us` and `p999_us` are NAN with less than 100 and 1000
// samples: there would be nothing beyond them.
typedef struct Figures {
    size_t count;
    double mean_us, min_us, median_us, p90_us, p99_us, p999_us, max_us;
    double quantiles_us[QUANTILE_COUNT]; // at QUANTILES
} Figures;

// All NAN without samples. Sorts them.
Figures figures_of(Samples *samples);

// The sample at a quantile of sorted ones.
int64_t sorted_quantile(const int64_t *sorted, size_t count, double quantile);
