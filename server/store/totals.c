// Totals. A parent is always older than its child, so the chain of parents ends without a limit or
// a set of visited sessions. A stored parent that is not older is damage.

#include "store/totals.h"

#include "store/event.h"
#include "store/session.h"

static int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t subtract_saturating(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

void totals_add(Totals *totals, const Totals *delta)
{
    totals->input_tokens = add_saturating(totals->input_tokens, delta->input_tokens);
    totals->output_tokens = add_saturating(totals->output_tokens, delta->output_tokens);
    totals->cache_read_tokens = add_saturating(totals->cache_read_tokens, delta->cache_read_tokens);
    totals->cache_write_tokens =
        add_saturating(totals->cache_write_tokens, delta->cache_write_tokens);
    totals->cost_nano_usd = add_saturating(totals->cost_nano_usd, delta->cost_nano_usd);
}

void totals_subtract(Totals *totals, const Totals *delta)
{
    totals->input_tokens = subtract_saturating(totals->input_tokens, delta->input_tokens);
    totals->output_tokens = subtract_saturating(totals->output_tokens, delta->output_tokens);
    totals->cache_read_tokens =
        subtract_saturating(totals->cache_read_tokens, delta->cache_read_tokens);
    totals->cache_write_tokens =
        subtract_saturating(totals->cache_write_tokens, delta->cache_write_tokens);
    totals->cost_nano_usd = subtract_saturating(totals->cost_nano_usd, delta->cost_nano_usd);
}

Error totals_update(Txn *txn, Ulid session, const Totals *delta)
{
    Session *head;
    Error error = session_head(txn, session, &head);
    if (error) return error;
    totals_add(head->totals, delta);
    head->updated_at = txn->now_ms;
    TotalsUpdate update = TOTALS_UPDATE__INIT;
    update.session_id = txn_id_text(txn, session);
    if (!update.session_id) return arena_error(txn->arena);
    update.totals = head->totals;
    TotalsUpdate *updates[] = {&update};
    Event event = EVENT__INIT;
    event.type = EVENT_TOTALS_UPDATED;
    event.totals = updates;
    event.n_totals = 1;
    error = event_put(txn, session, head, &event);
    if (error) return error;
    return session_put_head(txn, session, head);
}

// The head records to change, that of the session first. All are read before the first is written.
typedef struct Chain {
    Ulid *ids;
    Session **heads;
    size_t count, capacity;
} Chain;

static Error chain_push(Txn *txn, Chain *chain, Ulid id, Session *head)
{
    if (chain->count == chain->capacity) {
        size_t capacity = chain->capacity ? 2 * chain->capacity : 8;
        Ulid *ids = arena_array(txn->arena, Ulid, capacity);
        Session **heads = arena_array(txn->arena, Session *, capacity);
        if (!ids || !heads) return arena_error(txn->arena);
        if (chain->count) {
            memcpy(ids, chain->ids, chain->count * sizeof(Ulid));
            memcpy(heads, chain->heads, chain->count * sizeof(Session *));
        }
        *chain = (Chain){ids, heads, chain->count, capacity};
    }
    chain->ids[chain->count] = id;
    chain->heads[chain->count++] = head;
    return ERROR_NONE;
}

static Error chain_read(Txn *txn, Ulid session, Session *head, Chain *chain)
{
    Error error = chain_push(txn, chain, session, head);
    while (!error) {
        SessionBrief brief;
        error = session_brief(txn, session, &brief);
        if (error || ulid_is_zero(brief.parent)) return error;
        if (ulid_compare(brief.parent, session) >= 0) {
            return error_say(txn->detail, ERROR_CORRUPT,
                             "the parent of a session is not older than the session");
        }
        session = brief.parent;
        error = session_head(txn, session, &head);
        if (error == ERROR_SESSION_NOT_FOUND) return ERROR_NONE; // purged
        if (!error) error = chain_push(txn, chain, session, head);
    }
    return error;
}

Error totals_propagate(Txn *txn, Ulid session, Session *head, const Totals *delta,
                       TotalsUpdate ***out_updates, size_t *out_count)
{
    Chain chain = {.count = 0};
    Error error = chain_read(txn, session, head, &chain);
    if (error) return error;
    TotalsUpdate **updates = arena_array(txn->arena, TotalsUpdate *, chain.count);
    if (!updates) return arena_error(txn->arena);
    for (size_t i = 0; i < chain.count; i++) {
        totals_add(chain.heads[i]->totals, delta);
        chain.heads[i]->updated_at = txn->now_ms;
        TotalsUpdate *update = arena_new(txn->arena, TotalsUpdate);
        if (!update) return arena_error(txn->arena);
        tine__v1__totals_update__init(update);
        update->session_id = txn_id_text(txn, chain.ids[i]);
        if (!update->session_id) return arena_error(txn->arena);
        update->totals = chain.heads[i]->totals;
        updates[i] = update;
        if (i == 0) continue;
        error = session_put_head(txn, chain.ids[i], chain.heads[i]);
        if (error) return error;
    }
    *out_updates = updates;
    *out_count = chain.count;
    return ERROR_NONE;
}

Error totals_propagate_call(Txn *txn, Ulid session, const Totals *delta,
                            TotalsUpdate ***out_updates, size_t *out_count)
{
    Session *head;
    Error error = session_head(txn, session, &head);
    if (error) return error;
    error = totals_propagate(txn, session, head, delta, out_updates, out_count);
    if (error) return error;
    Event event = EVENT__INIT;
    event.type = EVENT_TOTALS_UPDATED;
    event.totals = *out_updates;
    event.n_totals = *out_count;
    error = event_put(txn, session, head, &event);
    if (error) return error;
    return session_put_head(txn, session, head);
}
