// Store check: runs its passes in order, in one transaction. Each pass has its own file. The pass
// over events comes before that over sessions, which needs the last event of each session.

#include "store/check.h"

#include "store/check_pass.h"

typedef Error (*CheckPass)(Check *check);

static const CheckPass PASSES[] = {
    check_tables,     check_events,  check_sessions,     check_session_indexes,
    check_entry_rows, check_origins, check_side_records, check_operations,
};

Error store_check(Store *store, const StoreCheckOptions *options, StoreCheckResult *out)
{
    StoreCheckResult result = {.damage_count = 0};
    Check check = {.options = options, .result = &result};
    Error error = txn_begin(store, /* is_write= */ false, NULL, &check.detail, &check.txn);
    if (error) return error;
    error = txn_state(&check.txn, &check.state);
    for (size_t i = 0; !error && i < sizeof(PASSES) / sizeof(*PASSES); i++) {
        error = PASSES[i](&check);
    }
    check_events_free(&check);
    txn_abort(&check.txn);
    if (!error) *out = result;
    return error;
}
