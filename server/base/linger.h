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
//     linger_begin(&linger, clock_monotonic_ns());
//     while (!(has_come = look()) && linger_goes_on(&linger, clock_monotonic_ns()))
//         continue;
//     if (has_come) linger_met(&linger);
//     else if (sleep_until_it_comes()) linger_missed(&linger, clock_monotonic_ns());

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Linger {         // begins as zeros
    int64_t begun_ns, until_ns; // of this wait
    int64_t seen_ns;            // when it was looked last
    int64_t rest_ns, rest_until_ns;
    bool is_patient;
} Linger;

// The wait begins.
void linger_begin(Linger *linger, int64_t now_ns);

// Whether to look once more without sleeping.
MUST_USE bool linger_goes_on(Linger *linger, int64_t now_ns);

// It was worth it.
void linger_met(Linger *linger);

// It has come, but nobody waited any more. Who never learns that leaves this out.
void linger_missed(Linger *linger, int64_t now_ns);
