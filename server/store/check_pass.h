// Check passes: the code that they share, for reports, walks over records and session states. Used
// by server/store/check*.c.

#pragma once

#include "names.h"
#include "report/error_detail.h"
#include "store/damage.h"

// Tells which rows of a session may exist.
typedef struct SessionState {
    bool is_live;      // it has rows in `sessions`
    bool is_tombstone; // purged, but forks read its messages
    bool is_purging;   // slices of its purge are pending
} SessionState;

// A hash table with the last event of each session seen so far.
typedef struct LastEvents {
    struct LastEvent *slots;
    size_t capacity, count;
} LastEvents;

typedef struct Check {
    Txn txn; // its arena is the one of the innermost walk
    ErrorDetail detail;
    const StoreCheckOptions *options;
    StoreCheckResult *result;
    StoreState state;
    LastEvents last_events;
    uint64_t part_rows;  // rows of `parts` that messages require and that exist
    Ulid cached_session; // the session of `cached_state`
    SessionState cached_state;
} Check;

// check_pass.c

// Counts one damage and reports it as "<table> <key>: <what>".
void check_damage(Check *check, DamageKind kind, StoreTable table, Slice key, const char *format,
                  ...) PRINTF_LIKE(5, 6);

// Turns an error from reading a damaged record into a damage. Returns errors of the environment.
MUST_USE Error check_survive(Check *check, Error error, StoreTable table, Slice key);

// Decodes into the arena of the walk. If that fails, reports damage and sets `*out_message_pointer`
// to NULL.
MUST_USE Error check_decode(Check *check, const ProtobufCMessageDescriptor *descriptor,
                            StoreTable table, Slice key, Slice bytes, void *out_message_pointer);

// Calls `visit` for each record of a table whose key begins with `prefix`. A record's chunks are
// joined, and `key` is without the chunk number. In a table without chunks, calls it for each row.
// Skips rows whose key or chunks are damaged, which check_tables reports. What a visit allocates
// from the transaction's arena is freed after it.
typedef Error (*CheckVisit)(Check *check, void *context, Slice key, Slice bytes);
MUST_USE Error check_each(Check *check, StoreTable table, Slice prefix, CheckVisit visit,
                          void *context);

// Takes the result of a cursor movement and goes on over rows with a wrong checksum, which
// check_tables reports. Returns other errors.
MUST_USE Error check_skip_bad(Check *check, KvCursor *cursor, Error error, bool *inout_found,
                              KvRow *inout_row);

// Looks up the row with this key. `out_value` may be NULL. A row with a wrong checksum counts as
// not found.
MUST_USE Error check_row(Check *check, StoreTable table, const Key *key, bool *out_found,
                         Slice *out_value);

// Finds out the state of a session. The last result is cached.
MUST_USE Error check_session_state(Check *check, Ulid session, SessionState *out);

// Returns whether `text` is the text of `id`. "" is the text of ULID_ZERO.
bool check_id_is(const char *text, Ulid id);

// check_key.c

// Returns whether a key has the shape that its table requires.
bool check_key_is_valid(StoreTable table, Slice key);
bool check_table_is_chunked(StoreTable table);

// Returns whether the rows of a table begin with the ID of the session they belong to.
bool check_table_is_of_sessions(StoreTable table);

// Returns the newest of the issued IDs in a valid key. Zero if it contains none.
Ulid check_key_newest_id(StoreTable table, Slice key);

// Writes a key for people to read: IDs as text, numbers in decimal, hashes in hexadecimal.
enum { CHECK_KEY_TEXT_BYTES_MAX = 256 };
void check_key_text(StoreTable table, Slice key, char out[CHECK_KEY_TEXT_BYTES_MAX]);

// check_event.c

MUST_USE Error check_events(Check *check);
// Returns the last event of a session that was seen. 0 if none is kept.
uint64_t check_last_event(const Check *check, Ulid session);
void check_events_free(Check *check);

// The other passes, each in a file of its own.

MUST_USE Error check_tables(Check *check);
MUST_USE Error check_sessions(Check *check);

// What a session's head record must contain according to its log and its origins.
typedef struct CheckedLog {
    Ulid head;       // last entry of the current history
    Ulid last_entry; // last entry of the log
    uint64_t entry_count_all, entry_count, message_count;
    int64_t newest_at; // greatest created_at; INT64_MIN: no entry
    // Of the usage of entries. `magnitudes` adds up the absolute values, and counts deleted
    // entries, too.
    __int128 sums[5], magnitudes[5]; // input, output, cache read, cache write, cost
} CheckedLog;

// Checks the entries of a session and computes `out`. `state` tells which other rows must exist.
MUST_USE Error check_log(Check *check, Ulid session, SessionState state, CheckedLog *out);

// Checks the index rows that an entry must have.
MUST_USE Error check_entry_indexes(Check *check, Slice key, SessionState state,
                                   const Message *message, Slice bytes, bool is_purged);

MUST_USE Error check_session_indexes(Check *check);
MUST_USE Error check_entry_rows(Check *check);
MUST_USE Error check_origins(Check *check);
MUST_USE Error check_side_records(Check *check);
MUST_USE Error check_operations(Check *check);
