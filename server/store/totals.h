// Totals: adding up, and up the chain of parents.

#pragma once

#include "names.h"
#include "store/store.h"

// Adds a delta. Each number saturates at the ends of int64 and never wraps.
void totals_add(Totals *totals, const Totals *delta);
void totals_subtract(Totals *totals, const Totals *delta);

// Adds a delta to one session. Works on deleted and archived ones. ERROR_SESSION_NOT_FOUND.
MUST_USE Error totals_update(Txn *txn, Ulid session, const Totals *delta);

// Adds a delta to a session and all its ancestors by parent_id and lists their new totals, the
// session first, in the arena. `head` is the session's decoded head, which the caller stores; the
// ancestors' are stored here. A purged ancestor ends the chain.
MUST_USE Error totals_propagate(Txn *txn, Ulid session, Session *head, const Totals *delta,
                                TotalsUpdate ***out_updates, size_t *out_count);

// The same as a call of its own, with its event. ERROR_SESSION_NOT_FOUND.
MUST_USE Error totals_propagate_call(Txn *txn, Ulid session, const Totals *delta,
                                     TotalsUpdate ***out_updates, size_t *out_count);
