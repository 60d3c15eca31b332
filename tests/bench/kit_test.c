// The harness kit's example does what its documentation says.

#include <stdlib.h>

#include "harness.h"

TEST(the_kits_workload_measures_and_prints_one_line_of_json)
{
    CHECK_EQ(system(MY_WORKLOAD " embedded::memory: 1 2 100 | jq -e --slurp 'length == 1 and"
                                " (.[0] | .forks == 1 and .messages == 2 and .count == 1000 and"
                                " .median_us > 0 and .p99_us >= .median_us)' >/dev/null"),
             0);
}

TEST(the_kits_workload_says_what_is_wrong)
{
    CHECK_EQ(system(MY_WORKLOAD " ipc:///nowhere/at/all 2>&1 >/dev/null | grep -q UNAVAILABLE"), 0);
    CHECK(system(MY_WORKLOAD " ipc:///nowhere/at/all 2>/dev/null") != 0);
}
