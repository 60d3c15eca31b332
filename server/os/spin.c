// Spinning: only numbers, no system calls.

#include "os/spin.h"

static const int64_t SPIN_NS = 60 * 1000;
static const int64_t PATIENT_NS = 150 * 1000;
static const int64_t GAP_NS = 20 * 1000; // not run for this long: others need the processor
static const int64_t REST_NS_MIN = 1000 * 1000;
static const int64_t REST_NS_MAX = 128 * 1000 * 1000;

void spin_begin(Spin *spin, int64_t now_ns)
{
    spin->begun_ns = spin->seen_ns = spin->until_ns = now_ns;
    if (now_ns < spin->rest_until_ns) return;
    spin->until_ns += spin->is_patient ? PATIENT_NS : SPIN_NS;
}

static void rest(Spin *spin, int64_t now_ns)
{
    int64_t rest_ns = spin->rest_ns * 2;
    if (rest_ns < REST_NS_MIN) rest_ns = REST_NS_MIN;
    if (rest_ns > REST_NS_MAX) rest_ns = REST_NS_MAX;
    spin->is_patient = false;
    spin->until_ns = now_ns;
    spin->rest_ns = rest_ns;
    spin->rest_until_ns = now_ns + rest_ns;
}

bool spin_goes_on(Spin *spin, int64_t now_ns)
{
    int64_t seen_ns = spin->seen_ns;
    spin->seen_ns = now_ns;
    if (now_ns < spin->until_ns && now_ns - seen_ns < GAP_NS) return true;
    if (seen_ns < spin->until_ns) rest(spin, now_ns);
    return false;
}

void spin_met(Spin *spin)
{
    spin->rest_ns = 0;
}

void spin_missed(Spin *spin, int64_t now_ns)
{
    if (now_ns - spin->begun_ns < PATIENT_NS) spin->is_patient = true;
}
