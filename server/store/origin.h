// Origins: the one mechanism behind forks, undo, clear and trees.
//
// An origin says what comes before some of the entries of a session. It belongs to a session S, has
// an ID R, and leads to message M of session P, or to nothing. The entries of S that are newer than
// R continue the history that ends at M, or begin with nothing before them. A fork writes an origin
// at the ID of the new session. A rewind writes an origin at a newly issued ID, which leads back
// into S or into an ancestor. M is always older than R, so every walk along origins ends.

#pragma once

#include "store/session.h"
#include "store/store.h"

// One run of a history: the entries of `session` after `after`, up to and including `through`.
typedef struct Segment {
    Ulid session;
    Ulid after;
    Ulid through;
} Segment;

// Walks along a history, from its newest segment to its oldest.
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

// Begins a walk along the history of `session` as it was when `through` was the newest ID.
// ULID_MAX: as it is now. The caller must call origin_walk_end. Borrows `txn` until then.
MUST_USE Error origin_walk_begin(OriginWalk *walk, Txn *txn, Ulid session, Ulid through);
// Returns the next segment. `*out_found` is false after the last one. ERROR_CORRUPT: an origin is
// damaged.
MUST_USE Error origin_walk_next(OriginWalk *walk, bool *out_found, Segment *out);
void origin_walk_end(OriginWalk *walk); // `walk` may be zeroed

typedef struct SegmentList {
    Segment *segments; // newest first; in the transaction's arena
    size_t count;
} SegmentList;

// Runs a whole walk and collects its segments. ERROR_CORRUPT: an origin is damaged.
MUST_USE Error origin_segments(Txn *txn, Ulid session, Ulid through, SegmentList *out);

// Returns whether `message` of session `owner` is in the history. False for messages that are only
// in the tree.
bool segments_contain(const SegmentList *list, Ulid owner, Ulid message);

// Checks that `message` is in the tree of `session`, and finds the session that owns it. The tree
// contains all messages of the session, also those on branches that were left, and those of its
// ancestors that some path of origins leads to: on each path, the messages up to the smallest
// cut-off. ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE.
MUST_USE Error origin_resolve(Txn *txn, Ulid session, Ulid message, Ulid *out_owner);

// Writes an origin of `session` with the ID `at`, and registers the session as a reader of the
// target's session.
MUST_USE Error origin_put(Txn *txn, Ulid session, Ulid at, const SessionOrigin *target);

// Checks the limit on fork depth. ERROR_FORK_CHAIN_TOO_DEEP: the history that ends at `target`
// reads more ancestors than the store's option allows.
MUST_USE Error origin_check_depth(Txn *txn, const SessionOrigin *target);
