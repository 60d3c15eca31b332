// Random bits: xoshiro256** by Blackman and Vigna, its state spread from one seed by splitmix64.

#include "os/random.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotated_left(uint64_t value, int count)
{
    return (value << count) | (value >> (64 - count));
}

uint64_t random_next(Random *random)
{
    uint64_t *state = random->state;
    uint64_t result = rotated_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotated_left(state[3], 45);
    return result;
}

void random_fill(Random *random, uint8_t *out_bytes, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t bits = random_next(random);
        size_t left = size - at;
        memcpy(out_bytes + at, &bits, left < sizeof bits ? left : sizeof bits);
    }
}

uint64_t random_below(Random *random, uint64_t bound)
{
    assert(bound > 0);
    // The lowest 2^64 mod bound values would make small results likelier: they are drawn again.
    uint64_t refused = (0 - bound) % bound;
    uint64_t bits;
    do {
        bits = random_next(random);
    } while (bits < refused);
    return bits % bound;
}

void random_seed(Random *random, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t mixed = seed;
        mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = mixed ^ (mixed >> 31);
    }
}

void random_seed_system(Random *random)
{
    ssize_t got;
    do {
        got = getrandom(random->state, sizeof random->state, 0);
    } while (got < 0 && errno == EINTR);
    // Up to 256 bytes come whole, and the call exists since Linux 3.17.
    assert(got == (ssize_t)sizeof random->state);
    random->state[0] |= (random->state[1] | random->state[2] | random->state[3]) == 0;
}
