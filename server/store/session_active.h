// by_active: keeps sessions sorted by (last_active_at, ID), for listings.
//
// When the session that is already last is appended to, its row is not moved. An agent that works
// alone thus writes two rows fewer per append. Therefore the key of a row may be older than the
// last_active_at of its session. What holds for neighbouring rows p before q is
//
//     (last_active_at of p, p) < (key of q)
//
// Two things follow. The rows are in the right order. And the row of a session is the last row
// whose key is not greater than the session's own (last_active_at, ID).

#pragma once

#include "store/session.h"

enum { SESSION_IS_NEW = -1 };

// Moves the row of a session after its last_active_at has changed from `old_ms` to `new_ms`.
// `old_ms` is SESSION_IS_NEW if the session has no row yet.
MUST_USE Error session_move_active(Txn *txn, Ulid id, int64_t old_ms, int64_t new_ms);

// Deletes the row of a session whose last_active_at is given.
MUST_USE Error session_drop_active(Txn *txn, Ulid id, int64_t last_active_at);
