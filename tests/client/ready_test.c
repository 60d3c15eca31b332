// tine_ready: waits until a server answers.

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"
#include "wire_server.h"

// Refuses the first requests, as a server that is starting does, then answers.
typedef struct Refusals {
    unsigned count;
    int code;
    unsigned seen;
} Refusals;

static void refuse(WireConnection *connection)
{
    Refusals *refusals = connection->context;
    wire_hello(connection);
    WireRequest request;
    while (wire_next_request(connection, &request)) {
        CHECK_STR(request.method, "/tine.v1.StoreService/Health");
        if (refusals->seen++ < refusals->count)
            wire_reply_status(connection, request.id, refusals->code, "REFUSED");
        else
            wire_reply_number(connection, request.id, 1);
    }
}

TEST(ready_waits_until_the_server_answers)
{
    Refusals refusals = {.count = 2, .code = STATUS_UNAVAILABLE};
    WireServer *server = wire_server_start(refuse, &refusals);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    TineStatus status;
    CHECK_EQ(tine_ready(tine, -1, &status), STATUS_OK);
    CHECK_EQ(status.code, STATUS_OK);
    CHECK_EQ(tine_ready(tine, HARNESS_PATIENCE_MS, NULL), STATUS_OK);
    wire_server_stop(&server);
    CHECK_EQ(refusals.seen, 4);
}

TEST(ready_looks_once_without_a_timeout)
{
    Refusals refusals = {.count = 1, .code = STATUS_UNAVAILABLE};
    WireServer *server = wire_server_start(refuse, &refusals);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    CHECK_EQ(tine_ready(tine, 0, NULL), STATUS_UNAVAILABLE);
    wire_server_stop(&server);
    CHECK_EQ(refusals.seen, 1);
}

TEST(ready_returns_what_waiting_does_not_mend)
{
    Refusals refusals = {.count = 1000, .code = STATUS_UNAUTHENTICATED};
    WireServer *server = wire_server_start(refuse, &refusals);
    CLEANUP(closep) Tine *tine = open_ok(wire_server_url(server));
    CHECK_EQ(tine_ready(tine, -1, NULL), STATUS_UNAUTHENTICATED);
    wire_server_stop(&server);
    CHECK_EQ(refusals.seen, 1);
}

TEST(ready_says_why_nobody_answered_in_time)
{
    static const int64_t TIMEOUTS_MS[] = {0, 20};
    for (size_t i = 0; i < 2; i++) {
        char url[256];
        snprintf(url, sizeof(url), "ipc://%s/s", test_dir());
        CLEANUP(closep) Tine *tine = open_ok(url);
        TineStatus status;
        CHECK_EQ(tine_ready(tine, TIMEOUTS_MS[i], &status), STATUS_UNAVAILABLE);
        CHECK(strstr(status.message, "no tined answers at"));
        CHECK(strstr(status.message, "No such file"));
    }
}

TEST(an_embedded_store_is_ready)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    CHECK_EQ(tine_ready(tine, 0, NULL), STATUS_OK);
    CHECK_EQ(tine_ready(tine, -1, NULL), STATUS_OK);
}
