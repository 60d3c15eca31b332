// A store in the test's directory, and the steps that its tests take: no handlers, no writer, each
// step in a write transaction of its own.

#pragma once

#include "harness.h"
#include "store/message_append.h"
#include "store/session_create.h"
#include "store/store.h"

typedef struct StoreFixture {
    Store *store;
    StoreOptions options;       // of the next open
    _Atomic int64_t now_ms;     // the wall clock; fixed until a test lets time pass
    _Atomic int64_t stepped_ms; // by how much now_ms was set; the rest of it has passed
    Arena arena;                // holds what the steps made, until the fixture is closed
    Txn txn;                    // between step_begin and step_end
} StoreFixture;

// On the heap, because the store's clock points into it.
StoreFixture *store_fixture_open(void);
StoreFixture *store_fixture_make(void); // not open yet: store_fixture_reopen opens it
void store_fixture_reopen(StoreFixture *f);
void store_fixture_close(StoreFixture **f);

// A write transaction; step_end commits it.
Txn *step_begin(StoreFixture *f);
void step_end(StoreFixture *f);

// Runs one store function in a transaction of its own, which must succeed:
//     STEP(f, session_rename(txn, id, "new-slug", SLUG_POLICY_FREE));
#define STEP(f, call)                                                                              \
    do {                                                                                           \
        Txn *txn = step_begin(f);                                                                  \
        CHECK_EQ((call), ERROR_NONE);                                                              \
        step_end(f);                                                                               \
    } while (0)

// Session settings that a test may go on to fill in.
Session *new_settings(StoreFixture *f);
Ulid create_session(StoreFixture *f, Session *settings, const SessionOrigin *origin);
Ulid primary_session(StoreFixture *f);
Ulid subagent_session(StoreFixture *f, Ulid parent);
Ulid fork_session(StoreFixture *f, Ulid source, ForkPoint point);

// Messages that a test may go on to fill in.
NewMessage *text_message(StoreFixture *f, Role role, const char *text);
NewMessage *entry(StoreFixture *f, MessageKind kind, const char *text);
void add_part(StoreFixture *f, NewMessage *message, Part *part);

// Appends as `append` says, with `message`'s draft.
Ulid append_message(StoreFixture *f, MessageAppend append, NewMessage *message);
Ulid append_text(StoreFixture *f, Ulid session, Role role, const char *text);

// What this transaction's thread would have to do between batches.
void run_purges(StoreFixture *f);

// The text of an id, until the fixture is closed.
char *id_text(StoreFixture *f, Ulid id);
