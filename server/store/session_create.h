// Creating sessions and forks.

#pragma once

#include "store/message.h"
#include "store/session.h"

typedef enum ForkPointKind { FORK_NONE, FORK_THROUGH, FORK_BEFORE, FORK_AT_HEAD } ForkPointKind;

typedef struct ForkPoint {
    ForkPointKind kind;
    Ulid message; // unless at the head
} ForkPoint;

// What comes before a session forked from `source` at a point; set, and to nothing, where that is
// the beginning. ERROR_SESSION_NOT_FOUND, ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE.
MUST_USE Error session_fork_origin(Txn *txn, Ulid source, const ForkPoint *point,
                                   SessionOrigin *out);

// Creates a session from what the caller said in `settings`; id, root_id, created_at (unless set),
// fork_message_id and the slug are filled here. `origin` may be unset.
// ERROR_SESSION_NOT_FOUND (parent), ERROR_SLUG_TAKEN, ERROR_EXTERNAL_TAKEN,
// ERROR_FORK_CHAIN_TOO_DEEP.
MUST_USE Error session_create(Txn *txn, Session *settings, SlugPolicy slug_policy,
                              const SessionOrigin *origin, Ulid *out_id);
