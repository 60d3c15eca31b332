// Figures.

#include "figures.h"

#include <math.h>
#include <stdlib.h>

const double QUANTILES[QUANTILE_COUNT] = {0,    0.01, 0.05, 0.1,   0.25,  0.5,    0.75, 0.9,
                                          0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t sorted_quantile(const int64_t *sorted, size_t count, double quantile)
{
    // 0.99 * 100 is a little less than 99 in binary: rounding must not make it 100.
    double rank = ceil(quantile * (double)count - 1e-9);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

static double us_at(const Samples *samples, double quantile)
{
    return (double)sorted_quantile(samples->values, samples->count, quantile) / 1e3;
}

Figures figures_of(Samples *samples)
{
    Figures figures = {.count = samples->count, NAN, NAN, NAN, NAN, NAN, NAN, NAN, {0}};
    for (size_t i = 0; i < QUANTILE_COUNT; i++)
        figures.quantiles_us[i] = NAN;
    if (samples->count == 0) return figures;
    qsort(samples->values, samples->count, sizeof(int64_t), compare);
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++)
        sum += (double)samples->values[i];
    figures.mean_us = sum / (double)samples->count / 1e3;
    figures.min_us = us_at(samples, 0);
    figures.median_us = us_at(samples, 0.5);
    figures.p90_us = us_at(samples, 0.9);
    if (samples->count >= 100) figures.p99_us = us_at(samples, 0.99);
    if (samples->count >= 1000) figures.p999_us = us_at(samples, 0.999);
    figures.max_us = us_at(samples, 1);
    for (size_t i = 0; i < QUANTILE_COUNT; i++)
        figures.quantiles_us[i] = us_at(samples, QUANTILES[i]);
    return figures;
}
