// Waiting awake, for a moment, for what usually comes at once.
//
// On an idle machine a thread that sleeps has sent a processor to sleep, and waking both takes some
// 20 us: longer than most answers take to make. So whoever has just sent something looks for what
// comes back a while longer than that before it sleeps. If that was in vain, because the other
// side takes its time or needs this very processor, it is not tried again for a time that doubles
// with each failure.
//
// A page takes its reader longer than that to decode. So when what was waited for in vain comes
// soon after all, the next wait is longer; until one is in vain again.
//
//     spin_begin(&spin, clock_monotonic_ns());
//     while (!(has_come = look()) && spin_goes_on(&spin, clock_monotonic_ns()))
//         continue;
//     if (has_come) spin_met(&spin);
//     else if (sleep_until_it_comes()) spin_missed(&spin, clock_monotonic_ns());

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Spin {           // begins as zeros
    int64_t begun_ns, until_ns; // of this wait
    int64_t seen_ns;            // when it was looked last
    int64_t rest_ns, rest_until_ns;
    bool is_patient;
} Spin;

// The wait begins.
void spin_begin(Spin *spin, int64_t now_ns);

// Whether to look once more without sleeping.
MUST_USE bool spin_goes_on(Spin *spin, int64_t now_ns);

// It was worth it.
void spin_met(Spin *spin);

// It has come, but nobody waited any more. Who never learns that leaves this out.
void spin_missed(Spin *spin, int64_t now_ns);
