// The limit for lines of one kind: so many a second, and the rest are counted.

#include "report/log_limit.h"

#include "base/limits.h"
#include "harness.h"

static const int64_t SECOND_NS = 1000000000;

TEST(lines_up_to_the_limit_are_written_and_the_next_is_not)
{
    LogLimit limit = {0};
    uint64_t left_out = 7;
    for (int i = 0; i < LOG_SAME_LINES_MAX; i++) {
        CHECK(log_limit_take(&limit, i, &left_out));
        CHECK_EQ(left_out, 0);
    }
    left_out = 7;
    CHECK(!log_limit_take(&limit, SECOND_NS - 1, &left_out));
    CHECK_EQ(left_out, 7);
}

TEST(the_next_second_begins_with_what_was_left_out)
{
    LogLimit limit = {0};
    uint64_t left_out;
    for (int i = 0; i < LOG_SAME_LINES_MAX + 5000; i++) {
        CHECK_EQ(log_limit_take(&limit, 0, &left_out), i < LOG_SAME_LINES_MAX);
    }
    CHECK(log_limit_take(&limit, SECOND_NS, &left_out));
    CHECK_EQ(left_out, 5000);
    CHECK(log_limit_take(&limit, SECOND_NS, &left_out));
    CHECK_EQ(left_out, 0);
}

TEST(lines_that_come_slowly_are_all_written)
{
    LogLimit limit = {0};
    uint64_t left_out;
    for (int64_t i = 0; i < 100; i++) {
        CHECK(log_limit_take(&limit, i * SECOND_NS / LOG_SAME_LINES_MAX, &left_out));
        CHECK_EQ(left_out, 0);
    }
}
