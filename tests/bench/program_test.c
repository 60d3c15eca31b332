// tine-bench itself, with every system that it was built with.

#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static int run(const char *format)
{
    char command[1024];
    snprintf(command, sizeof(command), format, test_dir(), test_dir());
    return system(command);
}

TEST(every_system_reads_what_it_was_given)
{
    CHECK_EQ(run(TINE_BENCH " --quick --only 'fork-chain-decoded/forks=1 ' --directory '%s'"
                            " --out '%s/out.json' 2>&1"),
             0);
    CHECK_EQ(run("jq -e '.cells | length > 5 and all(.skipped or .count > 0) and"
                 " any(.system == \"tine\") and any(.system == \"tine-direct\")' '%s/out.json'"),
             0);
    CHECK_EQ(run("! ls '%s' | grep tine-bench"), 0); // its stores are gone
}

TEST(every_system_and_workload_is_listed)
{
    CHECK_EQ(system(TINE_BENCH " --list | grep -q '^  tine '"), 0);
    CHECK_EQ(system(TINE_BENCH " --list | grep -q '^  fork-chain-bytes '"), 0);
}

TEST(what_is_not_there_is_said)
{
    CHECK_EQ(run(TINE_BENCH " --systems none --directory '%s' --out '%s/x' 2>&1 |"
                            " grep -q \"no system 'none'\""),
             0);
    CHECK_EQ(run(TINE_BENCH " --only nothing --directory '%s' --out '%s/x' 2>&1 |"
                            " grep -q \"no case has 'nothing'\""),
             0);
    CHECK_EQ(system(TINE_BENCH " --wrong 2>&1 | grep -q usage"), 0);
}
