// Handlers of the ledger of calls.

#include "rpc/call_check.h"
#include "rpc/handlers/handler.h"
#include "store/call_record.h"
#include "store/cost.h"

typedef struct LedgerCall {
    CallRecordPut put;
    Ulid deleted;
} LedgerCall;

static Error ledger_prepare(Rpc *rpc, const char *session_id, LedgerCall **out)
{
    LedgerCall *prepared = arena_new(&rpc->arena, LedgerCall);
    if (!prepared) return arena_error(&rpc->arena);
    rpc->prepared = prepared;
    *out = prepared;
    return rpc_id(rpc, "session_id", session_id, &prepared->put.session);
}

static Error receipt_new(Rpc *rpc, CallReceipt **out)
{
    CallReceipt *receipt = arena_new(&rpc->arena, CallReceipt);
    if (!receipt) return arena_error(&rpc->arena);
    tine__v1__call_receipt__init(receipt);
    *out = receipt;
    return ERROR_NONE;
}

Error check_record_call(Rpc *rpc, RecordCallRequest *request)
{
    LedgerCall *prepared = NULL;
    Error error = ledger_prepare(rpc, request->session_id, &prepared);
    if (error) return error;
    if (!request->call) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "call is required");
    prepared->put.call = request->call;
    prepared->put.propagate_usage = request->propagate_usage;
    return new_call_check(rpc, "call", request->call);
}

// RecordCall: stores a call in the ledger and returns its receipt.
Error handle_record_call(Rpc *rpc, const RecordCallRequest *request, RecordCallResponse *response)
{
    const LedgerCall *prepared = rpc->prepared;
    SessionBrief brief;
    Error error = session_brief(rpc->txn, prepared->put.session, &brief);
    if (!error) error = call_external_check(rpc->txn, request->call);
    if (!error) error = receipt_new(rpc, &response->receipt);
    if (error) return error;
    return call_record_put(rpc->txn, &prepared->put, txn_issue_id(rpc->txn), response->receipt);
}

// ListCalls: lists calls in the order in which they were recorded, or newest first.
Error handle_list_calls(Rpc *rpc, const ListCallsRequest *request, ListCallsResponse *response)
{
    Page page;
    Cursor cursor;
    bool found;
    CallQuery query = {
        .since = request->created_since,
        .until = request->created_until,
        .is_newest_first = request->newest_first,
    };
    Error error = read_session(rpc, request->session_id, &query.session);
    if (!error) {
        error =
            rpc_page(rpc, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &page);
    }
    if (!error) error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error) return error;
    query.after = cursor.position;
    query.limit = page.limit;
    query.page_bytes = page.bytes;
    error = call_record_append_page(rpc->txn, &query, reply_record_field(rpc), &rpc->reply,
                                    &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}

Error check_delete_call(Rpc *rpc, DeleteCallRequest *request)
{
    LedgerCall *prepared = NULL;
    Error error = ledger_prepare(rpc, request->session_id, &prepared);
    return error ? error : rpc_id(rpc, "call_id", request->call_id, &prepared->deleted);
}

// DeleteCall: removes a call from the ledger; the messages that it produced remain.
Error handle_delete_call(Rpc *rpc, const DeleteCallRequest *request, DeleteCallResponse *response)
{
    (void)request;
    const LedgerCall *prepared = rpc->prepared;
    Error error = receipt_new(rpc, &response->receipt);
    if (error) return error;
    return call_record_delete(rpc->txn, prepared->put.session, prepared->deleted,
                              response->receipt);
}

// SummarizeCost: sums the usage of calls by session, tree, project, model or day.
Error handle_summarize_cost(Rpc *rpc, const SummarizeCostRequest *request,
                            SummarizeCostResponse *response)
{
    if (request->by == COST_GROUP_UNSPECIFIED) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "by is required: SESSION, TREE, PROJECT, MODEL or DAY");
    }
    CostQuery query = {
        .by = request->by,
        .with_descendants = request->with_descendants,
        .project_dir = request->project_dir,
        .since = request->created_since,
        .until = request->created_until,
    };
    Page page;
    Cursor cursor;
    bool found;
    Error error = ERROR_NONE;
    if (*request->session_id) error = read_session(rpc, request->session_id, &query.session);
    if (!error && !*request->session_id && request->with_descendants) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                        "session_id is required with with_descendants");
    }
    if (!error) error = rpc_page(rpc, 0, UINT32_MAX, UINT32_MAX, request->page_bytes, &page);
    if (!error) error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error) return error;
    query.page_bytes = page.bytes;
    CostPlace place = {cursor.bound, cursor.pin, cursor.position};
    error = cost_summarize(rpc->txn, &query, &place, response);
    if (error || ulid_is_zero(place.session)) return error;
    cursor.bound = place.session;
    cursor.pin = place.parent;
    cursor.position = place.call;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}
