#include "base/linger.h"

static const int64_t LINGER_NS = 60 * 1000;
static const int64_t PATIENT_NS = 150 * 1000;
static const int64_t GAP_NS = 20 * 1000; // who was not running for so long, others want to
static const int64_t REST_NS_MIN = 1000 * 1000;
static const int64_t REST_NS_MAX = 128 * 1000 * 1000;

void linger_begin(Linger *linger, int64_t now_ns)
{
    linger->begun_ns = linger->seen_ns = linger->until_ns = now_ns;
    if (now_ns < linger->rest_until_ns) return;
    linger->until_ns += linger->is_patient ? PATIENT_NS : LINGER_NS;
}

static void rest(Linger *linger, int64_t now_ns)
{
    int64_t rest_ns = linger->rest_ns * 2;
    if (rest_ns < REST_NS_MIN) rest_ns = REST_NS_MIN;
    if (rest_ns > REST_NS_MAX) rest_ns = REST_NS_MAX;
    linger->is_patient = false;
    linger->until_ns = now_ns;
    linger->rest_ns = rest_ns;
    linger->rest_until_ns = now_ns + rest_ns;
}

bool linger_goes_on(Linger *linger, int64_t now_ns)
{
    int64_t seen_ns = linger->seen_ns;
    linger->seen_ns = now_ns;
    if (now_ns < linger->until_ns && now_ns - seen_ns < GAP_NS) return true;
    if (seen_ns < linger->until_ns) rest(linger, now_ns);
    return false;
}

void linger_met(Linger *linger)
{
    linger->rest_ns = 0;
}

void linger_missed(Linger *linger, int64_t now_ns)
{
    if (now_ns - linger->begun_ns < PATIENT_NS) linger->is_patient = true;
}
