// Calls for tests of the client: one that reads and one that writes.

#pragma once

#include "harness.h"
#include "tine.h"
#include "tine_calls.h"

enum { ANSWER_BYTES_MAX = 64 };

static inline void closep(Tine **tine)
{
    tine_close(*tine);
}

// What a test says of a Tine that it opens, and that must open.
Tine *open_ok(const char *url);
Tine *open_with(const char *url, TineOpenOptions options);

// The read: LatestUserMessageId of a session called `text`. The answer is "" after a failure.
int ask(Tine *tine, const TineCallOptions *options, const char *text,
        char out_answer[ANSWER_BYTES_MAX]);
int ask_plain(Tine *tine, const char *text); // without options or a look at the answer

// Asks and checks that the answer is the text itself, as wire_echo has it.
void ask_ok(Tine *tine, const char *text);

// The write: PublishEvent of type `type`. The sequence is 0 after a failure.
int publish(Tine *tine, const TineCallOptions *options, const char *type, uint64_t *out_sequence);

// PublishEvent and BroadcastEvent of a session (NULL: of none), which must succeed.
void publish_in(Tine *tine, const char *session, const char *type);
void broadcast_in(Tine *tine, const char *session, const char *type, const char *data_json);

// A new session, and an append to it, which must succeed.
typedef struct Id {
    char text[32];
} Id;

Id session_new(Tine *tine);
Id append_text(Tine *tine, const char *session, const char *text);

void purge(Tine *tine, const char *session);

// How many messages the session has, and the texts of its history: "m1 m2".
unsigned message_count(Tine *tine, const char *session);
const char *history_of(Tine *tine, const char *session); // good until the next call

// Runs `run` in `count` threads, each with its number and the context, and waits for all.
typedef struct Worker {
    unsigned number;
    void *context;
} Worker;

void in_threads(unsigned count, void (*run)(const Worker *worker), void *context);
