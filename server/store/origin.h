// Origins: forks, undo, clear and trees are one thing.
//
// An origin (session S, at id R, to message M of session P, or to nothing) says what comes before
// the entries of S that are newer than R. A fork is an origin at its session's own id; a rewind
// writes one at a fresh id, back into S or into an ancestor. M is always older than R, so every
// walk along origins ends.

#pragma once

#include "store/session.h"
#include "store/store.h"

// One run of a history: the entries of `session` newer than `after`, up to and with `through`.
typedef struct Segment {
    Ulid session;
    Ulid after;
    Ulid through;
} Segment;

// Walks a history from its newest segment back to its beginning.
//
//     OriginWalk walk;
//     error = origin_walk_begin(&walk, txn, session, through);
//     while (!error && …) error = origin_walk_next(&walk, &found, &segment);
//     origin_walk_end(&walk);
typedef struct OriginWalk {
    Txn *txn;
    KvCursor *cursor;
    Ulid session;
    Ulid through;
    bool is_done;
} OriginWalk;

// The history of `session` as it was when `through` was the newest id. ULID_MAX: as it is now.
MUST_USE Error origin_walk_begin(OriginWalk *walk, Txn *txn, Ulid session, Ulid through);
MUST_USE Error origin_walk_next(OriginWalk *walk, bool *out_found, Segment *out);
void origin_walk_end(OriginWalk *walk); // allowed on a zeroed walk

typedef struct SegmentList {
    Segment *segments; // newest first; in the transaction's arena
    size_t count;
} SegmentList;

// The whole walk at once. ERROR_CORRUPT when an origin points forward.
MUST_USE Error origin_segments(Txn *txn, Ulid session, Ulid through, SegmentList *out);

// Whether `message` of `owner` is in the history, and not only in the tree.
bool segments_contain(const SegmentList *list, Ulid owner, Ulid message);

// Finds the session that owns `message`, a place in the tree of `session`: it is the session's own,
// on a branch that was left too, or an ancestor's within the smallest cut-off on a path of origins
// to it. ERROR_MESSAGE_NOT_FOUND: there is no such message. ERROR_NOT_IN_TREE.
MUST_USE Error origin_resolve(Txn *txn, Ulid session, Ulid message, Ulid *out_owner);

// Writes an origin of `session` at `at`, and notes the reader.
MUST_USE Error origin_put(Txn *txn, Ulid session, Ulid at, const SessionOrigin *target);

// ERROR_FORK_CHAIN_TOO_DEEP if a history that begins with `target` reads more ancestors than the
// store's option allows.
MUST_USE Error origin_check_depth(Txn *txn, const SessionOrigin *target);
