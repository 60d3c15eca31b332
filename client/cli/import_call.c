// Imports the calls of a session, which come before the entries that they produced.

#include <string.h>

#include "import.h"

static bool is_same_external(const External *a, const External *b)
{
    return a && strcmp(a->source, b->source) == 0 && strcmp(a->id, b->id) == 0;
}

// Finds a call by its external ID. `out` is empty if the store does not have it.
static int find_call(Import *import, const External *external, char out[ID_BYTES])
{
    Cli *cli = import->cli;
    ListCallsRequest request = LIST_CALLS_REQUEST__INIT;
    CLEANUP(message_freep) ListCallsResponse *reply = NULL;
    request.session_id = import->id;
    out[0] = '\0';
    do {
        ListCallsResponse *next = NULL;
        if (tine_list_calls(cli->tine, &cli->call, &request, &next)) {
            return import_fail_call(import);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_calls && !*out; i++) {
            if (!is_same_external(reply->calls[i]->external, external)) continue;
            snprintf(out, ID_BYTES, "%s", reply->calls[i]->id);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !*out);
    return EXIT_OK;
}

static int record(Import *import, const CallRecord *call, External *external, char out[ID_BYTES])
{
    Cli *cli = import->cli;
    NewCall new = NEW_CALL__INIT;
    RecordCallRequest request = RECORD_CALL_REQUEST__INIT;
    CLEANUP(message_freep) RecordCallResponse *reply = NULL;
    new.request_id = call->request_id;
    new.requested = call->requested;
    new.resolved = call->resolved;
    new.provider_kind = call->provider_kind;
    new.usage = call->usage;
    new.created_at = call->created_at;
    new.duration_ms = call->duration_ms;
    new.finish_reason = call->finish_reason;
    new.error = call->error;
    new.external = external;
    new.data_json = call->data_json;
    request.session_id = import->id;
    request.call = &new;
    if (tine_record_call(cli->tine, &cli->call, &request, &reply)) return import_fail_call(import);
    snprintf(out, ID_BYTES, "%s", reply->receipt->id);
    return EXIT_OK;
}

int import_call(Import *import, const CallRecord *call)
{
    char id[ID_BYTES] = "";
    External made, *external = import_external(call->external, &made, call->id);
    int code = EXIT_OK;
    if (import->is_own) {
        snprintf(id, sizeof(id), "%s", call->id);
    } else if (!import->is_new) {
        code = find_call(import, external, id);
    }
    if (!code && !*id) code = record(import, call, external, id);
    if (code) return code;
    if (id_map_put(&import->ids, call->id, id)) {
        return import_fail(import, "call.id: '%s' is not an ID", call->id);
    }
    return EXIT_OK;
}
