// Costs: sums the calls of the ledger by group, in pages of bounded size.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct CostQuery {
    CostGroup by;
    Ulid session; // zero: all sessions
    bool with_descendants;
    const char *project_dir; // "": all projects
    int64_t since, until;    // bounds of created_at, `until` exclusive; 0: none
    size_t page_bytes;
} CostQuery;

// The position at which a page begins. All zero: at the beginning; also after the last page.
typedef struct CostPlace {
    Ulid session;
    Ulid parent; // of `session`, in case it is purged between two pages
    Ulid call;   // last call of `session` that was summed; zero: none
} CostPlace;

// Sums one page from `*place` on and moves `*place`. Fills `out->rows`, which are in the
// transaction's arena. ERROR_SESSION_NOT_FOUND.
MUST_USE Error cost_summarize(Txn *txn, const CostQuery *query, CostPlace *place,
                              SummarizeCostResponse *out);
