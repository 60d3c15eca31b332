// by_active: the sessions in the order of (last_active_at, id), for listings.
//
// A session that is already last is not re-keyed: an agent that works alone then writes two rows
// less per append. So a row's key may be older than its session's last_active_at. What holds for
// neighbours p before q is (last_active_at of p, p) < (key of q): the order of the rows is right,
// and a session's row is the last one not above its own (last_active_at, id).

#pragma once

#include "store/session.h"

enum { SESSION_IS_NEW = -1 };

// Keeps the order after last_active_at moved from `old_ms` (SESSION_IS_NEW: it has no row) to
// `new_ms`.
MUST_USE Error session_move_active(Txn *txn, Ulid id, int64_t old_ms, int64_t new_ms);

// Deletes the row of a session.
MUST_USE Error session_drop_active(Txn *txn, Ulid id, int64_t last_active_at);
