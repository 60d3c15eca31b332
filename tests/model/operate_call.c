// Operations on the ledger of calls.

#include <stdlib.h>

#include "operate.h"

static CallRecord *call_copy(const CallRecord *call)
{
    size_t size = tine__v1__call__get_packed_size(call);
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes);
    tine__v1__call__pack(call, bytes);
    CallRecord *copy = tine__v1__call__unpack(NULL, size, bytes);
    CHECK(copy);
    free(bytes);
    return copy;
}

bool operate_call_is_taken(const Model *model, const External *external)
{
    for (size_t i = 0; i < model->count; i++) {
        const ModelSession *session = model->sessions[i];
        if (session->is_tombstone) continue;
        for (size_t j = 0; j < session->call_count; j++) {
            const External *held = session->calls[j]->external;
            if (held && strcmp(held->id, external->id) == 0) return true;
        }
    }
    return false;
}

static ModelRef *random_model(Run *run)
{
    ModelRef *model = RUN_NEW(run, ModelRef);
    tine__v1__model_ref__init(model);
    model->provider = "p";
    model->name = run_text(run, "m%llu", (unsigned long long)run_below(run, 3));
    return model;
}

void operate_random_call(Run *run, CallRecord *call)
{
    call->requested = run_chance(run, 70) ? random_model(run) : NULL;
    call->resolved = run_chance(run, 70) || !call->requested ? random_model(run) : NULL;
    call->request_id = run_text(run, "r%u", run->next_number++);
    if (run_chance(run, 20)) { // of several chunks
        char *data = run_alloc(run, 9001);
        memset(data, ' ', 9000);
        data[8999] = '1';
        call->data_json = data;
    }
    if (run_chance(run, 30)) call->created_at = 1 + (int64_t)run_below(run, 1000000);
    if (run_chance(run, 60)) {
        call->usage = RUN_NEW(run, Usage);
        tine__v1__usage__init(call->usage);
        call->usage->input_tokens = (int64_t)run_below(run, 1000);
        call->usage->cost_nano_usd = (int64_t)run_below(run, 1000000);
    }
    if (run_chance(run, 30)) {
        call->external = RUN_NEW(run, External);
        tine__v1__external__init(call->external);
        call->external->source = "hecate";
        call->external->id = run_text(run, "call-%llu", (unsigned long long)run_below(run, 60));
    }
}

NewCall operate_new_call(const CallRecord *call)
{
    NewCall new = NEW_CALL__INIT;
    new.request_id = call->request_id;
    new.requested = call->requested;
    new.resolved = call->resolved;
    new.usage = call->usage;
    new.created_at = call->created_at;
    new.external = call->external;
    new.data_json = call->data_json;
    return new;
}

void operate_call_recorded(Run *run, ModelSession *session, const CallRecord *call,
                           TotalsUpdate **updates, size_t count)
{
    session->calls = realloc(session->calls, (session->call_count + 1) * sizeof(CallRecord *));
    CHECK(session->calls);
    session->calls[session->call_count++] = call_copy(call);
    ExpectedEvent *event = run_event(run, session, session->id, "call.recorded");
    snprintf(event->record_id, sizeof(event->record_id), "%s", call->id);
    operate_event_totals(event, updates, count);
}

void operate_record_call(Run *run)
{
    RecordCallRequest request = RECORD_CALL_REQUEST__INIT;
    CallRecord call = CALL_RECORD__INIT;
    SessionPick pick = pick_session(run);
    operate_random_call(run, &call);
    NewCall new = operate_new_call(&call);
    request.session_id = text_of(pick.id);
    request.call = &new;
    request.propagate_usage = run_chance(run, 30);
    const char *reason = pick.reason; // deleted and archived sessions take calls, too
    if (!*reason && call.external && operate_call_is_taken(&run->model, call.external)) {
        reason = "EXTERNAL_TAKEN";
    }
    RecordCallResponse *response = RUN_CALL(run, RECORD_CALL, RecordCall, &request, reason);
    if (!response) return;
    ModelSession *session = pick.session;
    run_new_id(run, response->receipt->id);
    call.id = response->receipt->id;
    call.session_id = session->id;
    if (call.created_at == 0) call.created_at = run->now_ms;
    CallReceipt expected = CALL_RECEIPT__INIT;
    expected.id = call.id;
    expected.session_id = session->id;
    expected.created_at = call.created_at;
    if (request.propagate_usage && call.usage) {
        Totals delta = TOTALS__INIT;
        delta.input_tokens = call.usage->input_tokens;
        delta.cost_nano_usd = call.usage->cost_nano_usd;
        expected.totals = operate_propagate(run, session, &delta, &expected.n_totals);
    }
    run_compare(run, "call's receipt", &response->receipt->base, &expected.base);
    operate_call_recorded(run, session, &call, expected.totals, expected.n_totals);
}

// The entries that a call produced name none from then on.
static void entries_forget_call(ModelSession *session, const char *id)
{
    for (size_t i = 0; i < session->entry_count; i++) {
        Entry *entry = session->entries[i];
        if (strcmp(entry->call_id, id) == 0) content_forget_call(entry);
    }
}

void operate_delete_call(Run *run)
{
    DeleteCallRequest request = DELETE_CALL_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    ModelSession *owner = run_chance(run, 90) ? pick.session : pick_live(run);
    size_t index = 0;
    request.session_id = text_of(pick.id);
    request.call_id = text_of("01HF7YAT000000000000000000");
    bool is_there = owner && owner->call_count > 0;
    if (is_there) {
        index = run_below(run, owner->call_count);
        request.call_id = run_text(run, "%s", owner->calls[index]->id);
    }
    const char *reason = pick.reason;
    if (!*reason && (!is_there || owner != pick.session)) reason = "CALL_NOT_FOUND";
    DeleteCallResponse *response = RUN_CALL(run, DELETE_CALL, DeleteCall, &request, reason);
    if (!response) return;
    CallReceipt expected = CALL_RECEIPT__INIT;
    expected.id = request.call_id;
    expected.session_id = owner->id;
    expected.created_at = owner->calls[index]->created_at;
    run_compare(run, "deleted call's receipt", &response->receipt->base, &expected.base);
    entries_forget_call(owner, request.call_id);
    tine__v1__call__free_unpacked(owner->calls[index], NULL);
    owner->call_count--;
    memmove(&owner->calls[index], &owner->calls[index + 1],
            (owner->call_count - index) * sizeof(CallRecord *));
    ExpectedEvent *event = run_event(run, owner, owner->id, "call.deleted");
    snprintf(event->record_id, sizeof(event->record_id), "%s", request.call_id);
}
