// A store in a fresh directory, and a client of it: what the tests of the calls stand on.
//
// The helpers ending in _ok make a call that must succeed; what they return lives until the fixture
// is closed.

#pragma once

#include "base/error.h"
#include "harness.h"
#include "kv/kv.h"
#include "names.h"
#include "rpc/engine.h"
#include "tine.h"
#include "tine_calls.h"

typedef struct Fixture {
    Tine *tine;
    Engine *engine;
    EngineOptions options;      // of the next open
    TineStatus status;          // of the last call
    _Atomic int64_t now_ms;     // the wall clock; fixed until a test lets time pass
    _Atomic int64_t stepped_ms; // by how much now_ms was set; the rest of it has passed
    struct FixtureMemory *memory;
} Fixture;

// Opens an ephemeral store whose clock stands still at 1 700 000 000 000 ms. On the heap, because
// the engine's clock points into it.
Fixture *fixture_open(void);

// The same, with one PRIMARY session; its id is in `*out_session`.
Fixture *fixture_with_session(const char **out_session);

// Closes and opens the store again, with `f->options`.
void fixture_reopen(Fixture *f);
void fixture_close(Fixture **f);

// Sets the wall clock without any time passing. (Time passes by `f->now_ms += ms`.)
void fixture_step_clock(Fixture *f, int64_t ms);

// One call by its typed function, which must succeed or fail with this reason:
//     GetSessionResponse *r = CALL_OK(f, get_session, GetSession, {.session_id = id});
//     CALL_FAILS(f, get_session, GetSession, "SESSION_NOT_FOUND", {.session_id = id});
// The braces hold designated initializers of the request.
#define CALL_OK(f, name, Name, ...) CALL_OK_WITH(f, NULL, name, Name, __VA_ARGS__)
#define CALL_OK_WITH(f, operation, name, Name, ...)                                                \
    ({                                                                                             \
        Name##Request call_request = __VA_ARGS__;                                                  \
        call_request.base.descriptor = &tine__v1__##name##_request__descriptor;                    \
        Name##Response *call_response = NULL;                                                      \
        TineCallOptions call_options = {.operation_id = (operation), .out_status = &(f)->status};  \
        fixture_fill(&call_request.base);                                                          \
        int call_code = tine_##name((f)->tine, &call_options, &call_request, &call_response);      \
        fixture_expect((f), call_code, "", __FILE__, __LINE__);                                    \
        fixture_keep((f), &call_response->base);                                                   \
        call_response;                                                                             \
    })
#define CALL_FAILS(f, name, Name, wanted_reason, ...)                                              \
    CALL_FAILS_WITH(f, NULL, name, Name, wanted_reason, __VA_ARGS__)
#define CALL_FAILS_WITH(f, operation, name, Name, wanted_reason, ...)                              \
    do {                                                                                           \
        Name##Request call_request = __VA_ARGS__;                                                  \
        call_request.base.descriptor = &tine__v1__##name##_request__descriptor;                    \
        Name##Response *call_response = NULL;                                                      \
        TineCallOptions call_options = {.operation_id = (operation), .out_status = &(f)->status};  \
        fixture_fill(&call_request.base);                                                          \
        int call_code = tine_##name((f)->tine, &call_options, &call_request, &call_response);      \
        fixture_expect((f), call_code, (wanted_reason), __FILE__, __LINE__);                       \
    } while (0)

// What the macros are made of. fixture_fill gives strings that were not named their "" and
// sub-messages their descriptors, so that designated initializers are enough.
void fixture_fill(ProtobufCMessage *message);
void fixture_expect(Fixture *f, int code, const char *reason, const char *file, int line);
void fixture_keep(Fixture *f, ProtobufCMessage *message);

// Zeroed memory that lives until the fixture is closed.
void *fixture_alloc(Fixture *f, size_t size);

// Sends raw bytes as they are; the reply's status is in f->status and its body is returned, kept
// until the fixture is closed.
Slice fixture_send(Fixture *f, Slice request);

// Shorthands.
const char *session_ok(Fixture *f);                      // a new PRIMARY session
const char *subagent_ok(Fixture *f, const char *parent); // a SUBAGENT of it
const char *append_ok(Fixture *f, const char *session, Role role, const char *text); // its id
const char *append_after_ok(Fixture *f, const char *session, const char *parent, const char *text);
const char *fork_ok(Fixture *f, const char *session, const char *through); // NULL: at the head
Session *get_ok(Fixture *f, const char *session);

// The texts of the history's first text parts, joined by blanks: "m1 m2 m3".
const char *history_texts(Fixture *f, const char *session);
const char *direct_texts(Fixture *f, const char *session);
const char *window_texts(Fixture *f, const char *session); // since the latest marker

// A message with one text part; the memory is the fixture's.
NewMessage *text_message(Fixture *f, Role role, const char *text);
