// Operations on a session's deletion, its head and its totals.

#include <stdlib.h>

#include "operate.h"

void operate_soft_delete(Run *run)
{
    SoftDeleteSessionRequest request = SOFT_DELETE_SESSION_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    SoftDeleteSessionResponse *response =
        RUN_CALL(run, SOFT_DELETE_SESSION, SoftDeleteSession, &request, pick.reason);
    if (!response) return;
    Session *record = pick.session->record;
    if (!record->deleted_at) {
        record->deleted_at = record->updated_at = run->now_ms;
        run_event(run, pick.session, pick.id, "session.deleted");
    }
    run_compare_session(run, response->session, pick.session, /* is_brief= */ true);
}

void operate_restore(Run *run)
{
    RestoreSessionRequest request = RESTORE_SESSION_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    for (size_t i = 0; pick.session && i < run->model.count; i++) { // there are few deleted ones
        ModelSession *session = run->model.sessions[i];
        if (session->is_tombstone || !session->record->deleted_at || run_chance(run, 30)) continue;
        pick = (SessionPick){session->id, session, ""};
    }
    request.session_id = text_of(pick.id);
    RestoreSessionResponse *response =
        RUN_CALL(run, RESTORE_SESSION, RestoreSession, &request, pick.reason);
    if (!response) return;
    Session *record = pick.session->record;
    if (record->deleted_at) {
        record->deleted_at = 0;
        record->updated_at = run->now_ms;
        run_event(run, pick.session, pick.id, "session.restored");
    }
    run_compare_session(run, response->session, pick.session, /* is_brief= */ true);
}

void operate_rewind(Run *run)
{
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    EntryPick to = {.id = "", .reason = ""};
    if (run_below(run, 60)) to = pick_entry(run, pick.session);
    request.message_id = text_of(to.id);
    const char *reason = pick_refusal(&pick);
    if (pick_expected_head(run, &pick, &request.expected_head_id, &reason)) {
        request.expected_head_case = REWIND_SESSION_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    }
    if (!*reason) reason = to.reason;
    if (!*reason && to.entry && !model_in_tree(&run->model, pick.session, to.entry)) {
        reason = "NOT_IN_TREE";
    }
    if (strcmp(to.reason, "INVALID_ARGUMENT") == 0) reason = to.reason;
    RewindSessionResponse *response =
        RUN_CALL(run, REWIND_SESSION, RewindSession, &request, reason);
    if (!response) return;
    ModelSession *session = pick.session;
    if (session->head != to.entry) {
        session->head = to.entry;
        model_read_add(session, to.entry);
        session->record->updated_at = run->now_ms;
        ExpectedEvent *event = run_event(run, session, pick.id, "session.rewound");
        snprintf(event->message_id, sizeof(event->message_id), "%s", to.id);
    }
    run_compare_session(run, response->session, session, /* is_brief= */ true);
}

static void add_totals(Run *run, ModelSession *session, const Totals *delta)
{
    totals_plus(session->record->totals, delta);
    session->record->updated_at = run->now_ms;
    session->is_touched = true;
}

void operate_event_totals(ExpectedEvent *event, TotalsUpdate **updates, size_t count)
{
    // One block: the pointers, then what they point to.
    size_t item_bytes = sizeof(TotalsUpdate) + sizeof(Totals) + ID_BYTES + 5;
    uint8_t *block = malloc(count * (sizeof(void *) + item_bytes) + 1);
    CHECK(block);
    event->totals = (TotalsUpdate **)(void *)block;
    event->total_count = count;
    for (size_t i = 0; i < count; i++) {
        uint8_t *item = block + count * sizeof(void *) + i * item_bytes;
        TotalsUpdate *update = (TotalsUpdate *)(void *)item;
        Totals *totals = (Totals *)(void *)(item + sizeof(TotalsUpdate));
        char *id = (char *)(item + sizeof(TotalsUpdate) + sizeof(Totals));
        *totals = *updates[i]->totals;
        memcpy(id, updates[i]->session_id, ID_BYTES);
        *update = *updates[i];
        update->totals = totals;
        update->session_id = id;
        event->totals[i] = update;
    }
}

TotalsUpdate **operate_propagate(Run *run, ModelSession *session, const Totals *delta,
                                 size_t *out_count)
{
    size_t count = 0;
    for (ModelSession *s = session; s; s = s->parent)
        count++;
    TotalsUpdate **updates = run_alloc(run, count * sizeof(TotalsUpdate *));
    *out_count = count;
    for (size_t i = 0; i < count; i++) {
        add_totals(run, session, delta);
        updates[i] = RUN_NEW(run, TotalsUpdate);
        tine__v1__totals_update__init(updates[i]);
        updates[i]->session_id = session->id;
        updates[i]->totals = RUN_NEW(run, Totals);
        *updates[i]->totals = *session->record->totals;
        session = session->parent;
    }
    return updates;
}

void operate_update_totals(Run *run)
{
    UpdateSessionTotalsRequest request = UPDATE_SESSION_TOTALS_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    request.delta = content_totals(run);
    UpdateSessionTotalsResponse *response =
        RUN_CALL(run, UPDATE_SESSION_TOTALS, UpdateSessionTotals, &request, pick.reason);
    if (!response) return;
    add_totals(run, pick.session, request.delta);
    TotalsUpdate update = TOTALS_UPDATE__INIT, *updates[] = {&update};
    update.session_id = text_of(pick.id);
    update.totals = pick.session->record->totals;
    operate_event_totals(run_event(run, pick.session, pick.id, "totals.updated"), updates, 1);
    run_compare_session(run, response->session, pick.session, /* is_brief= */ true);
}

void operate_propagate_totals(Run *run)
{
    PropagateTotalsRequest request = PROPAGATE_TOTALS_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    request.session_id = text_of(pick.id);
    request.delta = content_totals(run);
    PropagateTotalsResponse *response =
        RUN_CALL(run, PROPAGATE_TOTALS, PropagateTotals, &request, pick.reason);
    if (!response) return;
    PropagateTotalsResponse expected = PROPAGATE_TOTALS_RESPONSE__INIT;
    expected.totals = operate_propagate(run, pick.session, request.delta, &expected.n_totals);
    operate_event_totals(run_event(run, pick.session, pick.id, "totals.updated"), expected.totals,
                         expected.n_totals);
    run_compare(run, "propagated totals", &response->base, &expected.base);
}
