// "Did you mean".

#include "nearest.h"

#include "harness.h"

static const char *nearest_of(const char *wanted)
{
    Nearest nearest = nearest_begin(wanted);
    static const char *const NAMES[] = {"fork", "restore", "restore-backup", "rm", "log"};
    for (size_t i = 0; i < 5; i++)
        nearest_consider(&nearest, NAMES[i]);
    return nearest.name;
}

TEST(the_nearest_name_is_near)
{
    CHECK_STR(nearest_of("frok"), "fork");
    CHECK_STR(nearest_of("for"), "fork");
    CHECK_STR(nearest_of("restroe"), "restore");
    CHECK_STR(nearest_of("restore-bakup"), "restore-backup");
    CHECK_STR(nearest_of("zzzzzz"), NULL);
    CHECK_STR(nearest_of(""), NULL);
    CHECK_STR(nearest_of("an extremely long name that no command has at all"), NULL);
}
