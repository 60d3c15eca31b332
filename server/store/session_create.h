// Session creation: creates sessions and resolves the points at which sessions fork.

#pragma once

#include "store/message.h"
#include "store/session.h"

typedef enum ForkPointKind { FORK_NONE, FORK_THROUGH, FORK_BEFORE, FORK_AT_HEAD } ForkPointKind;

typedef struct ForkPoint {
    ForkPointKind kind;
    Ulid message; // unused with FORK_AT_HEAD
} ForkPoint;

// Finds the origin of a session that forks from `source` at `point`. `out->is_set` is always true;
// the origin is zero if the fork begins with the empty history. ERROR_SESSION_NOT_FOUND,
// ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE.
MUST_USE Error session_fork_origin(Txn *txn, Ulid source, const ForkPoint *point,
                                   SessionOrigin *out);

// Creates a session from the caller's fields in `settings`. Fills in ID, root_id, fork_message_id,
// the slug, and created_at if it is 0. `origin` may be unset (is_set false).
// ERROR_SESSION_NOT_FOUND (the parent), ERROR_SLUG_TAKEN, ERROR_EXTERNAL_TAKEN,
// ERROR_FORK_CHAIN_TOO_DEEP.
MUST_USE Error session_create(Txn *txn, Session *settings, SlugPolicy slug_policy,
                              const SessionOrigin *origin, Ulid *out_id);
