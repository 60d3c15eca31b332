// Handler of ListMessages, which lists all messages of a session, on every branch.

#include "rpc/handlers/handler.h"
#include "store/message_scan.h"
#include "wire/wire.h"

typedef struct LogQuery {
    const ListMessagesRequest *request;
    uint32_t kinds; // 0: all
    Page page;
} LogQuery;

static bool first_field_equals(Slice first, uint32_t number, const char *wanted)
{
    if (!*wanted) return true;
    WireField field;
    while (wire_next(&first, &field) && field.number <= number) {
        if (field.number == number) return slice_equal(field.bytes, slice_of(wanted));
    }
    return false;
}

static bool row_matches(const LogQuery *query, const MessageRow *row)
{
    const ListMessagesRequest *request = query->request;
    const MessageHeader *head = &row->header;
    bool wants_deleted = request->deleted == DELETED_FILTER_ONLY;
    bool takes_deleted = wants_deleted || request->deleted == DELETED_FILTER_INCLUDE;
    if (head->is_deleted ? !takes_deleted : wants_deleted) return false;
    if (query->kinds && !(query->kinds >> head->kind & 1u)) return false;
    if (request->role != ROLE_UNSPECIFIED && request->role != head->role) return false;
    if (request->status != MESSAGE_STATUS_UNSPECIFIED && request->status != head->status) {
        return false;
    }
    return first_field_equals(row->first, FIELD_MESSAGE_SUBTYPE, request->subtype) &&
           first_field_equals(row->first, FIELD_MESSAGE_TARGET_ID, request->target_id);
}

// Appends the messages that match. `out_last` is where the next page continues; zero at the end.
static Error append_log(Rpc *rpc, const LogQuery *query, const Segment *segment, Ulid *out_last)
{
    MessageScan scan;
    Error error = message_scan_open(&scan, rpc->txn);
    message_scan_start(&scan, segment, query->request->newest_first);
    uint32_t count = 0;
    Ulid last = ULID_ZERO;
    *out_last = ULID_ZERO;
    for (size_t scanned = 0; !error; scanned++) {
        const MessageRow *row;
        bool found;
        error = message_scan_next(&scan, &found, &row);
        if (error || !found) break;
        bool matches = row_matches(query, row);
        size_t size =
            matches ? wire_bytes_field_size(reply_record_field(rpc), row->reply_bytes) : 0;
        if (scanned == SCANNED_RECORDS_MAX || count == query->page.limit ||
            (count > 0 && buffer_size(&rpc->reply) + size > query->page.bytes)) {
            *out_last = last;
            break;
        }
        last = row->id;
        if (!matches) continue;
        error = message_scan_append_to(&scan, reply_record_field(rpc), &rpc->reply);
        count++;
    }
    message_scan_close(&scan);
    return error;
}

// ListMessages: lists messages by kind, role, status, subtype and target, in either order.
Error handle_list_messages(Rpc *rpc, const ListMessagesRequest *request,
                           ListMessagesResponse *response)
{
    LogQuery query = {.request = request};
    Segment segment = {.through = ULID_MAX};
    Error error = read_session(rpc, request->session_id, &segment.session);
    if (error) return error;
    for (size_t i = 0; i < request->n_kinds; i++) {
        if (request->kinds[i] == MESSAGE_KIND_UNSPECIFIED) {
            return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                            "kinds: UNSPECIFIED is no kind; leave kinds empty for all");
        }
        query.kinds |= 1u << request->kinds[i];
    }
    error =
        rpc_page(rpc, request->limit, UINT32_MAX, LIST_LIMIT_MAX, request->page_bytes, &query.page);
    Cursor cursor;
    bool found = false;
    if (!error) error = cursor_read(rpc, request->cursor, &found, &cursor);
    if (error) return error;
    if (!found) {
        StoreState state;
        error = txn_state(rpc->txn, &state);
        if (error) return error;
        cursor.pin = state.last_id;
    }
    segment.through = cursor.pin;
    if (found && request->newest_first) segment.through = ulid_previous(cursor.position);
    if (found && !request->newest_first) segment.after = cursor.position;
    error = append_log(rpc, &query, &segment, &cursor.position);
    if (error || ulid_is_zero(cursor.position)) return error;
    return cursor_write(rpc, &cursor, &response->next_cursor);
}
