// Costs: the ledger's calls summed by group, a bounded page at a time.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct CostQuery {
    CostGroup by;
    Ulid session; // zero: of all
    bool with_descendants;
    const char *project_dir; // "": of all
    int64_t since, until;    // created_at, until exclusive; 0: any
    size_t page_bytes;
} CostQuery;

// Where a page goes on. All zero: at the beginning, and after the last page.
typedef struct CostPlace {
    Ulid session;
    Ulid parent; // of that session, should it be purged by then
    Ulid call;   // the last of it that was summed; zero: none
} CostPlace;

// Sums from `place` on, moves it, and fills `out->rows`, in the transaction's arena.
// ERROR_SESSION_NOT_FOUND.
MUST_USE Error cost_summarize(Txn *txn, const CostQuery *query, CostPlace *place,
                              SummarizeCostResponse *out);
