// Random bits for ids: seeded from the kernel, not for secrets.

#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Random {
    uint64_t state[4]; // xoshiro256**
} Random;

void random_seed_system(Random *random);         // from getrandom(2)
void random_seed(Random *random, uint64_t seed); // a repeatable sequence, for tests
uint64_t random_next(Random *random);
void random_fill(Random *random, uint8_t *out_bytes, size_t size);
uint64_t random_below(Random *random, uint64_t bound); // 0 … bound-1, bound > 0
