// Totals: adds token counts and costs to a session and to its ancestors.

#pragma once

#include "names.h"
#include "store/store.h"

// Add or subtract a delta. Each number stops at the limits of int64 and never wraps.
void totals_add(Totals *totals, const Totals *delta);
void totals_subtract(Totals *totals, const Totals *delta);

// Adds a delta to the totals of one session and stores an event. Deleted and archived sessions are
// allowed. ERROR_SESSION_NOT_FOUND.
MUST_USE Error totals_update(Txn *txn, Ulid session, const Totals *delta);

// Adds a delta to the totals of a session and of all its ancestors by parent_id. `*out_updates`
// lists their new totals, those of the session first, in the arena. `head` is the decoded head
// record of the session, which the caller must store; the function stores those of the ancestors.
// The chain ends at an ancestor that was purged.
MUST_USE Error totals_propagate(Txn *txn, Ulid session, Session *head, const Totals *delta,
                                TotalsUpdate ***out_updates, size_t *out_count);

// Does the same as a call of its own: reads and stores the head record, and stores an event.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error totals_propagate_call(Txn *txn, Ulid session, const Totals *delta,
                                     TotalsUpdate ***out_updates, size_t *out_count);
