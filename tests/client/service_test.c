// protobuf-c's own stubs.

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"
#include "tine/v1/store.pb-c.h"

// What a closure was given.
typedef struct Seen {
    unsigned count;
    bool was_null;
    Id id;
} Seen;

static void see_created(const Tine__V1__CreateSessionResponse *response, void *data)
{
    Seen *seen = data;
    seen->count++;
    seen->was_null = response == NULL;
    if (response) snprintf(seen->id.text, sizeof(seen->id.text), "%s", response->session->id);
}

static void see_got(const Tine__V1__GetSessionResponse *response, void *data)
{
    Seen *seen = data;
    seen->count++;
    seen->was_null = response == NULL;
    if (response) snprintf(seen->id.text, sizeof(seen->id.text), "%s", response->session->id);
}

static void destroyp(ProtobufCService **service)
{
    protobuf_c_service_destroy(*service);
}

TEST(protobuf_stubs_call_through_the_client)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    TineStatus status;
    CLEANUP(destroyp)
    ProtobufCService *service =
        tine_client_service(tine, &(TineCallOptions){.out_status = &status});
    CHECK(service != NULL);

    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "p";
    model.name = "m";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = "/p";
    session.model = &model;
    Tine__V1__CreateSessionRequest create = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    create.session = &session;
    Seen created = {.count = 0}, got = {.count = 0};
    tine__v1__store_service__create_session(service, &create, see_created, &created);
    CHECK_EQ(created.count, 1);
    CHECK(!created.was_null);
    CHECK_EQ(status.code, STATUS_OK);

    Tine__V1__GetSessionRequest get = TINE__V1__GET_SESSION_REQUEST__INIT;
    get.session_id = created.id.text;
    tine__v1__store_service__get_session(service, &get, see_got, &got);
    CHECK_EQ(got.count, 1);
    CHECK_STR(got.id.text, created.id.text);

    get.session_id = "00000000000000000000000000";
    tine__v1__store_service__get_session(service, &get, see_got, &got);
    CHECK_EQ(got.count, 2);
    CHECK(got.was_null);
    CHECK_EQ(status.code, STATUS_NOT_FOUND);
    CHECK_STR(status.reason, "SESSION_NOT_FOUND");
}

TEST(protobuf_stubs_need_no_options)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    CLEANUP(destroyp) ProtobufCService *service = tine_client_service(tine, NULL);
    Tine__V1__GetSessionRequest get = TINE__V1__GET_SESSION_REQUEST__INIT;
    Seen got = {.count = 0};
    tine__v1__store_service__get_session(service, &get, see_got, &got);
    CHECK_EQ(got.count, 1);
    CHECK(got.was_null);
}

static void see_event(const Tine__V1__WatchEventsResponse *response, void *data)
{
    Seen *seen = data;
    seen->count++;
    seen->was_null = response == NULL;
}

TEST(the_stub_of_a_stream_fails_and_names_the_call_that_works)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    TineStatus status;
    CLEANUP(destroyp)
    ProtobufCService *service =
        tine_client_service(tine, &(TineCallOptions){.out_status = &status});
    Tine__V1__WatchEventsRequest watch = TINE__V1__WATCH_EVENTS_REQUEST__INIT;
    Seen seen = {.count = 0};
    tine__v1__store_service__watch_events(service, &watch, see_event, &seen);
    CHECK_EQ(seen.count, 1);
    CHECK(seen.was_null);
    CHECK_EQ(status.code, STATUS_UNIMPLEMENTED);
    CHECK_STR(status.reason, "UNIMPLEMENTED");
    CHECK(strstr(status.message, "tine_watch"));
}
