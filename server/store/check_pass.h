// What the passes of a check share: reporting, walking over records, and the state of a session.
// Internal to server/store/check*.c.

#pragma once

#include "names.h"
#include "report/error_detail.h"
#include "store/damage.h"

// Whether a session's rows may be there, and which.
typedef struct SessionState {
    bool is_live;      // it has rows in `sessions`
    bool is_tombstone; // purged, but forks read its messages
    bool is_purging;   // slices are pending
} SessionState;

// The last event seen of each session: a hash table.
typedef struct LastEvents {
    struct LastEvent *slots;
    size_t capacity, count;
} LastEvents;

typedef struct Check {
    Txn txn; // its arena is that of the innermost walk
    ErrorDetail detail;
    const StoreCheckOptions *options;
    StoreCheckResult *result;
    StoreState state;
    LastEvents last_events;
    uint64_t part_rows;  // that messages ask for and that are there
    Ulid cached_session; // whose state is `cached_state`
    SessionState cached_state;
} Check;

// check_pass.c

// Counts one damage and tells the caller: "<table> <key>: <what>".
void check_damage(Check *check, DamageKind kind, StoreTable table, Slice key, const char *format,
                  ...) PRINTF_LIKE(5, 6);

// Turns what reading a damaged record returned into a damage. Errors of the environment stay
// errors.
MUST_USE Error check_survive(Check *check, Error error, StoreTable table, Slice key);

// Decodes into the walk's arena. Damage is reported, and `*out_message_pointer` is NULL then.
MUST_USE Error check_decode(Check *check, const ProtobufCMessageDescriptor *descriptor,
                            StoreTable table, Slice key, Slice bytes, void *out_message_pointer);

// Calls `visit` for each record of a table (chunks put together, `key` without the chunk number) or
// row whose key begins with `prefix`. Rows whose key or chunks are damaged are passed over: the
// pass over tables reports them. What a visit allocates from the transaction's arena is gone after
// it.
typedef Error (*CheckVisit)(Check *check, void *context, Slice key, Slice bytes);
MUST_USE Error check_each(Check *check, StoreTable table, Slice prefix, CheckVisit visit,
                          void *context);

// Whether there is a row with this key. `out_value` may be NULL.
MUST_USE Error check_row(Check *check, StoreTable table, const Key *key, bool *out_found,
                         Slice *out_value);

MUST_USE Error check_session_state(Check *check, Ulid session, SessionState *out);

// Whether `text` is the text of `id`; "" stands for ULID_ZERO.
bool check_id_is(const char *text, Ulid id);

// check_key.c

bool check_key_is_valid(StoreTable table, Slice key);
bool check_table_is_chunked(StoreTable table);
const char *check_table_name(StoreTable table);

// Whether the rows of a table begin with the id of the session they belong to.
bool check_table_is_of_sessions(StoreTable table);

// The greatest issued id in a key that is valid; zero if it holds none.
Ulid check_key_newest_id(StoreTable table, Slice key);

// Writes a key for people: ids as text, numbers in decimal, hashes in hexadecimal.
enum { CHECK_KEY_TEXT_BYTES_MAX = 256 };
void check_key_text(StoreTable table, Slice key, char out[CHECK_KEY_TEXT_BYTES_MAX]);

// check_event.c

MUST_USE Error check_events(Check *check);
// The last event of a session that was seen; 0 if none is kept.
uint64_t check_last_event(const Check *check, Ulid session);
void check_events_free(Check *check);

// The other passes, by file.

MUST_USE Error check_tables(Check *check);
MUST_USE Error check_sessions(Check *check);

// What a session's log and origins say its head must be.
typedef struct CheckedLog {
    Ulid head;       // the last entry of the current history
    Ulid last_entry; // of the log
    uint64_t entry_count_all, entry_count, message_count;
    int64_t newest_at;               // the greatest created_at; INT64_MIN without an entry
    __int128 sums[5], magnitudes[5]; // of the usage: input, output, cache read and write, cost
} CheckedLog;

// Checks a session's entries and computes `out`. `state`: what else there must be of it.
MUST_USE Error check_log(Check *check, Ulid session, SessionState state, CheckedLog *out);

// Checks one entry against what is indexed of it.
MUST_USE Error check_entry_indexes(Check *check, Slice key, SessionState state,
                                   const Message *message, Slice bytes, bool is_purged);

MUST_USE Error check_session_indexes(Check *check);
MUST_USE Error check_entry_rows(Check *check);
MUST_USE Error check_origins(Check *check);
MUST_USE Error check_side_records(Check *check);
MUST_USE Error check_operations(Check *check);
