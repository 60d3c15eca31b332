// Damage: the kinds of damage that a check of the store can find, and the form of its report.

#pragma once

#include "store/store.h"

// X(constant, name, meaning). Scripts read the names: do not change them.
#define DAMAGE_KINDS(X)                                                                            \
    X(CHECKSUM, "checksum", "a row's checksum is wrong")                                           \
    X(KEY, "key", "a key has the wrong shape")                                                     \
    X(CHUNKS, "chunks", "a record's chunks do not add up")                                         \
    X(ORPHAN, "orphan", "a row belongs to a session that does not exist")                          \
    X(UNREADABLE, "unreadable", "a record cannot be decoded")                                      \
    X(MISPLACED, "misplaced", "a record contains another ID than its key")                         \
    X(ID_ORDER, "id_order", "an ID is newer than the last one issued")                             \
    X(META, "meta", "the rows about the store itself are wrong")                                   \
    X(SESSION_ROWS, "session_rows", "a session has only one of its two rows")                      \
    X(SESSION_LINEAGE, "session_lineage", "parent, root or fork point is wrong")                   \
    X(SESSION_COUNTS, "session_counts", "a session's counts or next_sequence are wrong")           \
    X(SESSION_TOTALS, "session_totals", "own_totals are not the sum of the entries")               \
    X(SESSION_HEAD_ID, "session_head_id", "head_id is not the history's last entry")               \
    X(SESSION_LAST_ENTRY, "session_last_entry", "last_entry_id is not the log's last entry")       \
    X(SESSION_LAST_ACTIVE, "session_last_active", "last_active_at is not the newest time")         \
    X(SESSION_PREVIEW, "session_preview", "a preview does not match its message")                  \
    X(SESSION_EVENT, "session_event", "last_event_sequence is not the session's last event")       \
    X(CHILDREN, "children", "children and parent_id disagree")                                     \
    X(SESSION_INDEX, "session_index", "session_index and a session's settings disagree")           \
    X(BY_ACTIVE, "by_active", "by_active has lost a session or misplaced it")                      \
    X(PURGE, "purge", "the note of a purge or a tombstone is wrong")                               \
    X(MESSAGE_HEAD, "message_head", "the header of a message differs from the message")            \
    X(MESSAGE_SEQUENCE, "message_sequence", "sequences have a gap or a repeat")                    \
    X(MESSAGE_PARENT, "message_parent", "parent_id is not the entry before it")                    \
    X(MESSAGE_OWNER, "message_owner", "message_owner and messages disagree")                       \
    X(MESSAGE_EXTERNAL, "message_external", "message_external and messages disagree")              \
    X(MARKER, "marker", "the markers index and the entries disagree")                              \
    X(PART, "part", "the parts index and the messages disagree")                                   \
    X(ORIGIN, "origin", "an origin does not lead to an older message of the session it names")     \
    X(READER, "reader", "readers and origins disagree")                                            \
    X(ORIGINAL, "original", "an original has no message")                                          \
    X(TODOS, "todos", "a task list's summary is wrong")                                            \
    X(CALL, "call", "calls, their external IDs and the head records disagree")                     \
    X(OPERATION, "operation", "operations and operations_by_age disagree")                         \
    X(EVENT, "event", "an event is missing or impossible")                                         \
    X(EVENT_CHAIN, "event_chain", "an event does not name the previous one of its session")        \
    X(MANIFEST, "manifest", "a file of a backup is not as its manifest says")

typedef enum DamageKind {
#define X(constant, name, text) DAMAGE_##constant,
    DAMAGE_KINDS(X)
#undef X
        DAMAGE_KIND_COUNT,
} DamageKind;

const char *damage_name(DamageKind kind);
const char *damage_text(DamageKind kind);

typedef struct Damage {
    DamageKind kind;
    StoreTable table;
    Slice key;        // as stored; for a record, without its chunk number
    const char *text; // "messages 01H…/01H…: parent_id is '', but the entry before it is 01H…"
} Damage;

typedef struct StoreCheckOptions {
    // Called for each damage, which is borrowed until the call returns. NULL: damage is only
    // counted.
    void (*found)(void *context, const Damage *damage);
    void *context;
} StoreCheckOptions;

typedef struct StoreCheckResult {
    uint64_t damage_count;
    uint64_t counts[DAMAGE_KIND_COUNT];
    uint64_t rows[TABLE_COUNT];
    uint64_t sessions, messages, events, tombstones, purges_pending;
} StoreCheckResult;
