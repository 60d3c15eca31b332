// tine_test: a tined for a test, with a store and a socket of its own.
//
//     TineTest *daemon;
//     if (tine_test_start(NULL, &status, &daemon)) … // status says why
//     tine_open(tine_test_url(daemon), &status, &tine);
//     …
//     tine_close(tine);
//     if (tine_test_end(daemon, &status)) … // tined did not end as it should
//
// It runs the tined that the options name, else $TINED, else the one in $PATH. Variables TINE_… of
// the environment do not reach it. A tined whose test was killed ends by itself after 10 minutes
// without a client. A TineTest is for one thread at a time. Linux only, as tined.

#pragma once

#include "tine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TineTest TineTest;

// All zeros is the default. Borrowed until tine_test_end.
typedef struct TineTestOptions {
    const char *tined;            // the program; NULL: $TINED, else "tined" in $PATH
    const char *const *arguments; // further ones of tined, the last one NULL; NULL: none
    int64_t ready_ms;             // how long it may take to answer; 0: 60 s
} TineTestOptions;

// Starts a tined on a new store in a temporary directory, and returns when it answers. `options`
// may be NULL. Returns 0, then the caller ends `*out_test` with tine_test_end; or a code that
// `out_status` (may be NULL) explains with what tined said: NOT_FOUND, there is no such program.
int tine_test_start(const TineTestOptions *options, TineStatus *out_status, TineTest **out_test);

// What tine_open takes: "ipc://…". Borrowed until tine_test_end.
const char *tine_test_url(const TineTest *test);

// Ends tined at once, as a crash would. What it acknowledged is in the store.
void tine_test_kill(TineTest *test);

// Tells tined to stop and waits for its end; after 30 s it is killed. Returns 0, or a code if it
// was killed or ended with an error. Does nothing if none runs.
int tine_test_stop(TineTest *test, TineStatus *out_status);

// Starts tined again after tine_test_kill or tine_test_stop, on the same store and socket, and
// returns when it answers. Codes as those of tine_test_start.
int tine_test_restart(TineTest *test, TineStatus *out_status);

// Stops tined, removes its store, and frees `test`. Returns as tine_test_stop does. NULL is
// allowed.
int tine_test_end(TineTest *test, TineStatus *out_status);

#ifdef __cplusplus
}
#endif
