// kill -9 under load: what was acknowledged is there, what was sent again is there once, and the
// clients go on by themselves.

#include <signal.h>
#include <stdio.h>

#include "os/random.h"
#include "writers.h"

TEST(sixty_four_writers_go_on_through_fifty_kills_and_lose_nothing)
{
    enum { KILLS = 50, WRITES_BETWEEN_MAX = 1000, CHECKED_EVERY = 10 };
    static Writers writers;
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    writers_start(&writers, tined.socket, WRITERS_MAX, 0, /* is_full_allowed= */ false);
    Random random;
    random_seed(&random, test_seed());
    size_t kills = test_scaled(KILLS);
    for (size_t i = 0; i < kills; i++) {
        writers_wait_acknowledged(&writers, 1 + random_below(&random, WRITES_BETWEEN_MAX));
        CHECK_EQ(tined_stop(&tined, SIGKILL), -SIGKILL);
        if (i % CHECKED_EVERY == 0) writers_check(&writers, tined.data);
        tined_forget(&tined);
        tined_start(&tined, NULL);
    }
    writers_wait_acknowledged(&writers, WRITERS_MAX);
    writers_stop(&writers);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
    writers_check(&writers, tined.data);
    for (size_t i = 0; i < writers.count; i++)
        CHECK_EQ(writers.list[i].begun, writers.list[i].acknowledged);
}
