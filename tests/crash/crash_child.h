// The process that is killed: threads that write, and the memory in which they report to whoever
// kills it.
//
// A record says what a call is about before the call is made; once it is answered, its result is
// written and the record counted as acknowledged, before the next one begins. So at death each
// thread has at most one write of which nobody knows whether it happened.

#pragma once

#include <stdatomic.h>

#include "engine_call.h"

enum { CRASH_THREADS = 3, CRASH_RECORDS_MAX = 2048, CRASH_SESSIONS_MAX = 16 };

typedef enum CrashOp {
    CRASH_APPEND,
    CRASH_APPEND_LARGE, // 1 MiB
    CRASH_CREATE,       // a subagent of the session
    CRASH_FORK,         // at the head
    CRASH_PROPAGATE,
    CRASH_REMEMBER,
    CRASH_DELETE, // the message `target`
    CRASH_PURGE,  // the session
} CrashOp;

typedef struct CrashRecord {
    CrashOp op;
    uint32_t number; // its own: the text it writes, the money it spends
    char operation_id[32];
    IdText session;
    IdText target;
    IdText result; // the id of what it made
} CrashRecord;

typedef struct CrashThread {
    // What the parent gives it: the first session stays, the others may be purged.
    IdText sessions[CRASH_SESSIONS_MAX];
    size_t session_count;
    IdText bulk; // a session of thousands of messages to purge; "": none

    atomic_uint begun, acknowledged;
    CrashRecord records[CRASH_RECORDS_MAX];
} CrashThread;

// Where the writer stands: set at the seam.
typedef enum CrashPhase { CRASH_IDLE, CRASH_PUTTING, CRASH_COMMITTING } CrashPhase;

typedef struct CrashShared {
    atomic_int phase;
    atomic_uint batches;  // that have put something
    atomic_uint puts;     // of this batch
    atomic_int is_failed; // a call of the child failed
    unsigned cycle;
    uint64_t seed;
    CrashThread threads[CRASH_THREADS];
} CrashShared;

// Writes until it is killed, or until all records are used up.
__attribute__((noreturn)) void crash_child_run(CrashShared *shared, const char *directory);

// Makes the call that a record describes and fills its result; the same call each time.
Error crash_call(Engine *engine, CrashRecord *record);

// Whether an append of this number moves the ancestors' totals too.
static inline bool crash_propagates(uint32_t number)
{
    return number % 3 == 0;
}
