// Guards: find out whether the processes of a test hang, on a machine that may be as busy as it
// likes.
//
// The clock on the wall cannot tell: a busy machine makes every test slow. But what hangs either
// sleeps or spins. Whoever spins comes to the end of its processor time (RLIMIT_CPU). And a test
// hangs asleep if at many looks in a row all of its threads sleep, and hardly used a processor in
// between; a thread that waits for a processor or for a disk does not sleep.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    GUARD_LOOK_MS = 1000, // between two looks
    GUARD_LOOKS = 60,     // a test that sleeps at so many looks in a row hangs
};

typedef struct Guard {
    pid_t group;
    unsigned look_ms, looks_max;
    unsigned looks_asleep; // in a row
    uint64_t cpu_ms;       // of the group, at the first of them
} Guard;

// Looks at all processes of the group. Returns whether they hang asleep. Call it every `look_ms`.
bool guard_looks(Guard *guard);

// Waits for the end of a child, whose process group it guards; returns waitpid's status. A group
// that hangs is killed, and `*out_hangs` is set.
int guard_wait(Guard guard, pid_t child, bool *out_hangs);

// Bounds the processor time of this process, and of each that it starts: SIGXCPU ends it then.
void guard_limit_cpu(unsigned seconds);
