// Spinning: waits for a message without sleeping, because it usually comes within microseconds.
//
// On an idle machine, waking a thread and its processor takes about 20 us, which is longer than it
// takes to make most answers. So a thread that has just sent something polls for the answer for
// 60 us before it sleeps. If nothing comes in that time, because the other side is slow or needs
// this processor, the thread does not spin again for a rest, which doubles with each failure.
//
// A client takes longer than 60 us to decode a page. So if a message comes soon after a spin has
// failed, the next spin is longer (150 us), until that fails too.
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
    int64_t seen_ns;            // time of the last poll
    int64_t rest_ns, rest_until_ns;
    bool is_patient;
} Spin;

// Begins a wait.
void spin_begin(Spin *spin, int64_t now_ns);

// Returns whether to poll once more. False: the caller sleeps.
MUST_USE bool spin_goes_on(Spin *spin, int64_t now_ns);

// Call this if the message came while spinning.
void spin_met(Spin *spin);

// Call this if the message came after the spin had ended. A caller that does not learn when it came
// may leave this out.
void spin_missed(Spin *spin, int64_t now_ns);
