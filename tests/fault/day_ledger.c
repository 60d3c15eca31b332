// The day's steps on the ledger of calls. What an exchange puts before its last message fails must
// be gone again.

#include "day_ledger.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "engine_call.h"

typedef struct LedgerCall {
    ModelRef model;
    Usage usage;
    External external;
    NewCall call;
} LedgerCall;

static void call_fill(LedgerCall *out, const char *external)
{
    *out = (LedgerCall){MODEL_REF__INIT, USAGE__INIT, EXTERNAL__INIT, NEW_CALL__INIT};
    out->model.provider = "anthropic";
    out->model.name = "model-1";
    out->usage.cost_nano_usd = 7;
    out->external.source = "hecate";
    out->external.id = (char *)(uintptr_t)external;
    out->call.resolved = &out->model;
    out->call.usage = &out->usage;
    out->call.external = &out->external;
}

Error day_record_call(Day *day)
{
    enum { DATA_BYTES = 2 * VALUE_BYTES_MAX };
    RecordCallRequest request = RECORD_CALL_REQUEST__INIT;
    LedgerCall ledger;
    char data[DATA_BYTES + 1];
    call_fill(&ledger, "call-1");
    memset(data, ' ', DATA_BYTES);
    data[0] = '1';
    data[DATA_BYTES] = '\0';
    ledger.call.data_json = data;
    request.session_id = day->agent;
    request.call = &ledger.call;
    request.propagate_usage = true;
    RecordCallResponse *response;
    Error error = engine_call(day->engine, METHOD_RECORD_CALL, &request, "op-call", &response);
    if (!error) snprintf(day->call, sizeof(IdText), "%s", response->receipt->id);
    engine_free(response);
    return error;
}

Error day_exchange(Day *day)
{
    enum { COUNT = 3 };
    AppendExchangeRequest request = APPEND_EXCHANGE_REQUEST__INIT;
    LedgerCall ledger;
    Text texts[COUNT];
    Part parts[COUNT], *pointers[COUNT];
    NewMessage messages[COUNT], *sent[COUNT];
    External external = EXTERNAL__INIT;
    external.source = "hecate";
    external.id = "last";
    for (int i = 0; i < COUNT; i++) {
        tine__v1__text__init(&texts[i]);
        tine__v1__part__init(&parts[i]);
        tine__v1__new_message__init(&messages[i]);
        texts[i].text = (char *)(uintptr_t)(i == 2 ? "answer" : "question");
        parts[i].kind_case = PART__KIND_TEXT;
        parts[i].text = &texts[i];
        pointers[i] = &parts[i];
        messages[i].role = i == 2 ? ROLE_ASSISTANT : ROLE_USER;
        messages[i].parts = &pointers[i];
        messages[i].n_parts = 1;
        sent[i] = &messages[i];
    }
    messages[2].external = &external;
    call_fill(&ledger, "call-2");
    request.session_id = day->agent;
    request.messages = sent;
    request.n_messages = COUNT;
    request.call = &ledger.call;
    request.propagate_usage = true;
    return engine_call(day->engine, METHOD_APPEND_EXCHANGE, &request, NULL, NULL);
}

Error day_delete_call(Day *day)
{
    DeleteCallRequest request = DELETE_CALL_REQUEST__INIT;
    request.session_id = day->agent;
    request.call_id = day->call;
    return engine_call(day->engine, METHOD_DELETE_CALL, &request, NULL, NULL);
}

Error day_read_ledger(Day *day)
{
    ListCallsRequest list = LIST_CALLS_REQUEST__INIT;
    list.session_id = day->agent;
    Error error = engine_call(day->engine, METHOD_LIST_CALLS, &list, NULL, NULL);
    if (error) return error;
    SummarizeCostRequest cost = SUMMARIZE_COST_REQUEST__INIT;
    cost.by = COST_GROUP_PROJECT;
    return engine_call(day->engine, METHOD_SUMMARIZE_COST, &cost, NULL, NULL);
}
