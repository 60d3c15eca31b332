// A run: one store, its model, and the stream of random operations on both.

#pragma once

#include <stdio.h>

#include "harness.h"
#include "model.h"
#include "os/random.h"
#include "rpc/engine.h"
#include "tine_calls.h"

// X(constant, name, Name, is_write): the calls that a run makes.
// clang-format off
#define RUN_METHODS(X)                                                                             \
    X(CREATE_SESSION, create_session, CreateSession, true)                                         \
    X(GET_SESSION, get_session, GetSession, false)                                                 \
    X(LIST_SESSIONS, list_sessions, ListSessions, false)                                           \
    X(UPDATE_SESSION_TOTALS, update_session_totals, UpdateSessionTotals, true)                     \
    X(PROPAGATE_TOTALS, propagate_totals, PropagateTotals, true)                                   \
    X(SOFT_DELETE_SESSION, soft_delete_session, SoftDeleteSession, true)                           \
    X(RENAME_SESSION, rename_session, RenameSession, true)                                         \
    X(LATEST_USER_MESSAGE_ID, latest_user_message_id, LatestUserMessageId, false)                  \
    X(FORK_SESSION, fork_session, ForkSession, true)                                               \
    X(APPEND_MESSAGE, append_message, AppendMessage, true)                                         \
    X(GET_MESSAGE, get_message, GetMessage, false)                                                 \
    X(MESSAGES_FOR_SESSION, messages_for_session, MessagesForSession, false)                       \
    X(MESSAGES_DIRECT_FOR_SESSION, messages_direct_for_session, MessagesDirectForSession, false)   \
    X(MESSAGES_SINCE_LATEST_MARKER, messages_since_latest_marker, MessagesSinceLatestMarker, false)\
    X(ADD_COMPACTION_MARKER, add_compaction_marker, AddCompactionMarker, true)                     \
    X(LATEST_MARKER, latest_marker, LatestMarker, false)                                           \
    X(LIST_MARKERS_FOR_SESSION, list_markers_for_session, ListMarkersForSession, false)            \
    X(REMEMBER_SESSION_MEMORY, remember_session_memory, RememberSessionMemory, true)               \
    X(FORGET_SESSION_MEMORY, forget_session_memory, ForgetSessionMemory, true)                     \
    X(LIST_SESSION_MEMORIES, list_session_memories, ListSessionMemories, false)                    \
    X(REPLACE_SESSION_TODOS, replace_session_todos, ReplaceSessionTodos, true)                     \
    X(GET_SESSION_TODOS, get_session_todos, GetSessionTodos, false)                                \
    X(RESOLVE_SESSION, resolve_session, ResolveSession, false)                                     \
    X(RESTORE_SESSION, restore_session, RestoreSession, true)                                      \
    X(UPDATE_SESSION, update_session, UpdateSession, true)                                         \
    X(PURGE_SESSION, purge_session, PurgeSession, true)                                            \
    X(REWIND_SESSION, rewind_session, RewindSession, true)                                         \
    X(DELETE_MESSAGE, delete_message, DeleteMessage, true)                                         \
    X(PURGE_MESSAGE, purge_message, PurgeMessage, true)                                            \
    X(APPEND_EXCHANGE, append_exchange, AppendExchange, true)                                      \
    X(APPEND_PART, append_part, AppendPart, true)                                                  \
    X(SEAL_MESSAGE, seal_message, SealMessage, true)                                               \
    X(LIST_MESSAGES, list_messages, ListMessages, false)                                           \
    X(LIST_PARTS, list_parts, ListParts, false)                                                    \
    X(PUT_ORIGINAL, put_original, PutOriginal, true)                                               \
    X(LIST_ORIGINALS, list_originals, ListOriginals, false)                                        \
    X(BUILD_CONTEXT, build_context, BuildContext, false)                                           \
    X(RECORD_CALL, record_call, RecordCall, true)                                                  \
    X(LIST_CALLS, list_calls, ListCalls, false)                                                    \
    X(DELETE_CALL, delete_call, DeleteCall, true)                                                  \
    X(SUMMARIZE_COST, summarize_cost, SummarizeCost, false)                                        \
    X(LIST_EVENTS, list_events, ListEvents, false)                                                 \
    X(PUBLISH_EVENT, publish_event, PublishEvent, true)                                            \
    X(STATS, stats, Stats, false)

// Every reason that these calls can have.
#define RUN_REASONS(X)                                                                             \
    X(SESSION_NOT_FOUND) X(MESSAGE_NOT_FOUND) X(MEMORY_NOT_FOUND) X(SESSION_DELETED)               \
    X(SESSION_ARCHIVED) X(FORKS_EXIST) X(FORK_CHAIN_TOO_DEEP) X(SLUG_TAKEN) X(EXTERNAL_TAKEN)      \
    X(HEAD_MOVED) X(OPERATION_ID_REUSED) X(INVALID_ARGUMENT) X(INVALID_PART) X(UNKNOWN_PART_KIND)  \
    X(NOT_IN_TREE) X(INVALID_UTF8) X(INVALID_JSON) X(TOO_LONG) X(EVENTS_GONE) X(STORE_CHANGED)  \
    X(CALL_NOT_FOUND) X(MESSAGE_SEALED) X(HISTORY_DIVERGED)
// clang-format on

typedef enum RunMethod {
#define X(constant, name, Name, is_write) RUN_##constant,
    RUN_METHODS(X)
#undef X
        RUN_METHOD_COUNT,
} RunMethod;

enum { REASON_COUNT_MAX = 23 };

// An event that the store must have written since the last comparison.
typedef struct ExpectedEvent {
    uint64_t sequence, previous;
    char session_id[ID_BYTES], message_id[ID_BYTES], record_id[ID_BYTES];
    const char *type, *data_json;
    char operation_id[24];
    Role role;
    int64_t created_at;
    TotalsUpdate **totals; // owned
    size_t total_count;
} ExpectedEvent;

// A write that can be sent again.
typedef struct Replay {
    char operation_id[24];
    RunMethod method;
    ProtobufCMessage *request, *response; // owned
    int64_t sent_at;
} Replay;

enum { REPLAY_COUNT = 64, DEAD_ID_COUNT = 64, REPORT_LINES = 24 };

// A listing of a history that goes on while others write.
typedef struct OpenPages {
    ModelSession *session; // NULL: none is open
    bool newest_first, is_direct;
    char cursor[300], through[ID_BYTES]; // "": it began at the head
    Entry **entries;                     // what is left of the history as it was; owned
    size_t count, position;
} OpenPages;

typedef struct RunOptions {
    uint64_t seed;
    size_t operations;
    bool ends_on_difference; // the process, with exit code RUN_DIFFERS
} RunOptions;

enum { RUN_DIFFERS = 99 };

typedef struct Run {
    RunOptions options;
    EngineOptions engine_options;
    char directory[200];
    Engine *engine;
    Tine *tine;
    int64_t now_ms, latest_ms; // the wall clock, and the latest time it ever showed
    int64_t boot_ms;           // the time that passes
    int64_t aged_ms;           // the store time that has passed, at most
    Random random;
    Arena scratch;                // of one step
    ProtobufCMessage **responses; // of one step
    size_t response_count, response_capacity;

    Model model;
    char last_id[ID_BYTES]; // the newest that was seen
    uint64_t last_event_sequence;
    uint64_t compared_event_sequence;
    ExpectedEvent *events; // since the last comparison
    size_t event_count, event_capacity;
    uint64_t event_count_max;
    bool is_purging;   // slices may be pending …
    bool is_releasing; // … that take tombstones along
    char dead_sessions[DEAD_ID_COUNT][ID_BYTES], dead_messages[DEAD_ID_COUNT][ID_BYTES];
    size_t dead_session_count, dead_message_count;
    unsigned next_number; // makes names unique

    Replay replays[REPLAY_COUNT];
    size_t replay_count;
    char operation_id[24];        // of the write that ran last; "" if it had none
    char failed_operation_id[24]; // of a write that failed: free for the next
    OpenPages pages;
    ModelSession *favourites[8]; // most writes go to these; replaced now and then

    uint64_t step;
    const char *doing; // the operation's name
    uint64_t method_counts[RUN_METHOD_COUNT], method_successes[RUN_METHOD_COUNT];
    uint64_t reason_counts[REASON_COUNT_MAX];
    uint64_t comparisons, reopenings;
    char report[REPORT_LINES][160]; // the last writes
    size_t report_count;
} Run;

void run_open(Run *run, const RunOptions *options);
void run_close(Run *run);
void run_reopen(Run *run);

// Runs the whole: operations and comparisons.
void run_all(Run *run);

// Prints how often each call was made and each reason seen. `is_complete`: none may be missing.
void run_report(Run *run, bool is_complete);

// Ends the test with what is known of the place.
__attribute__((noreturn)) void run_differs(Run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define RUN_CHECK(run, condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) run_differs((run), "%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
    } while (0)

// Makes a call that must end with this reason ("": succeed). The response, NULL after a failure,
// lives until run_forget.
ProtobufCMessage *run_call(Run *run, RunMethod method, ProtobufCMessage *request,
                           const char *reason);
#define RUN_CALL(run, NAME, Name, request, reason)                                                 \
    ((Name##Response *)run_call((run), RUN_##NAME, &(request)->base, (reason)))
void run_forget(Run *run);

// Sends an old write again, or its operation_id with another request.
void run_replay(Run *run);
void run_reuse_operation(Run *run);

// Waits until no purge is pending.
void run_settle(Run *run);

// Checks that an id is younger than all that were seen, and notes it.
void run_new_id(Run *run, const char *id);

// Notes an event that the write just made. `head` is the session whose chain it joins, or NULL.
ExpectedEvent *run_event(Run *run, ModelSession *head, const char *session_id, const char *type);

// Compares a record with what it must be, field by field.
void run_compare(Run *run, const char *what, const ProtobufCMessage *actual,
                 const ProtobufCMessage *expected);
void run_compare_session(Run *run, const Session *actual, ModelSession *session, bool is_brief);

// Random things.
static inline uint64_t run_below(Run *run, uint64_t bound)
{
    return random_below(&run->random, bound);
}

static inline bool run_chance(Run *run, unsigned percent)
{
    return run_below(run, 100) < percent;
}

// Memory of one step.
void *run_alloc(Run *run, size_t size);
#define RUN_NEW(run, Type) ((Type *)run_alloc((run), sizeof(Type)))
char *run_text(Run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A string that requests hold though they do not write to it.
static inline char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}
