// ISO 8601 times, and numbers of JSON.

#include "importers/iso_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "harness.h"
#include "os/random.h"
#include "text/json_walk.h"

static int64_t time_of(const char *text)
{
    return iso_time_ms(slice_of(text));
}

TEST(time_that_is_written_is_read_back_on_every_day)
{
    enum { DAY_MS = 24 * 60 * 60 * 1000 };
    Random random;
    random_seed(&random, 3);
    for (int64_t day = 0; day * DAY_MS < TIME_MS_MAX;
         day += 1 + (int64_t)random_below(&random, 9)) {
        int64_t time_ms = day * DAY_MS + 1 + (int64_t)random_below(&random, DAY_MS - 1);
        char text[ISO_TIME_BYTES], quoted[ISO_TIME_BYTES + 2];
        iso_time_write(time_ms, text);
        snprintf(quoted, sizeof(quoted), "\"%s\"", text);
        CHECK_EQ(time_of(quoted), time_ms);
    }
}

TEST(time_is_read_in_other_forms_of_the_standard_too)
{
    CHECK_EQ(time_of("\"2025-11-20T10:00:00.000Z\""), INT64_C(1763632800000));
    CHECK_EQ(time_of("\"2025-11-20T10:00:00Z\""), INT64_C(1763632800000));
    CHECK_EQ(time_of("\"2025-11-20T10:00:00.5Z\""), INT64_C(1763632800500));
    CHECK_EQ(time_of("\"2025-11-20T11:00:00.000+01:00\""), INT64_C(1763632800000));
    CHECK_EQ(time_of("\"2025-11-19T24:00:00.000Z\""), INT64_C(1763596800000));
    CHECK_EQ(time_of("\"2024-02-29T00:00:00.000Z\""), INT64_C(1709164800000));
    CHECK_EQ(time_of("\"2024-02-30T00:00:00.000Z\""), INT64_C(1709251200000)); // the day after
}

TEST(time_that_is_none_is_zero)
{
    CHECK_EQ(time_of("\"2025-13-20T10:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-00-20T10:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-32T10:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-00T10:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-20T25:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-20T10:60:00.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-20T10:00:61.000Z\""), 0);
    CHECK_EQ(time_of("\"2025-11-20 10:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"1969-12-31T23:59:59.999Z\""), 0);
    CHECK_EQ(time_of("\"0000-01-01T00:00:00.000Z\""), 0);
    CHECK_EQ(time_of("\"\""), 0);
    CHECK_EQ(time_of("1763632800000"), 0);
}

TEST(number_is_what_strtod_says)
{
    static const char *const NUMBERS[] = {
        "0",
        "7",
        "-0",
        "-1",
        "12.5",
        "1e3",
        "1E-3",
        "999999999999999",
        "9007199254740993",
        "10",
        "0.1",
        "-2",
        "1e9",
        "1763632800000",
        "123456789012345678901234567890",
    };
    for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(*NUMBERS); i++) {
        CHECK(json_number(slice_of(NUMBERS[i])) == strtod(NUMBERS[i], NULL));
    }
    CHECK(json_number(slice_of("\"1\"")) == 0);
    CHECK(json_number(slice_of("null")) == 0);
    CHECK(json_number(slice_of("")) == 0);
}
