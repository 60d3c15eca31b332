// Previews. The history of an ancestor never leads back into the session. So a walk over the
// session's own entries in the history ends at the first segment of another session.

#include "store/preview.h"

#include "base/limits.h"
#include "store/message_scan.h"
#include "store/origin.h"
#include "text/utf8.h"
#include "wire/wire.h"

static Error cut_copy(Txn *txn, Slice text, size_t bytes_max, char **out)
{
    char *copy = arena_string(txn->arena, utf8_cut(text, bytes_max));
    if (!copy) return arena_error(txn->arena);
    *out = copy;
    return ERROR_NONE;
}

Error preview_note(Txn *txn, Session *head, MessageKind kind, Role role, Slice text)
{
    if (kind != MESSAGE_KIND_CONVERSATION || text.size == 0) return ERROR_NONE;
    if (role == ROLE_ASSISTANT) {
        return cut_copy(txn, text, LAST_PREVIEW_BYTES_MAX, &head->last_agent_message);
    }
    if (role != ROLE_USER) return ERROR_NONE;
    if (!*head->first_message_preview) {
        Error error = cut_copy(txn, text, FIRST_PREVIEW_BYTES_MAX, &head->first_message_preview);
        if (error) return error;
    }
    return cut_copy(txn, text, LAST_PREVIEW_BYTES_MAX, &head->last_user_message);
}

static bool row_is_turn_of(const MessageRow *row, Role role)
{
    return !row->header.is_deleted && row->header.kind == MESSAGE_KIND_CONVERSATION &&
           row->header.role == role;
}

// Returns the text of the scan's current entry. It borrows from the page of the entry or from
// `buffer`, which is reused for each entry so that large ones do not add up, or is in the arena.
static Error row_text(MessageScan *scan, Buffer *buffer, Slice *out)
{
    Slice bytes = scan->row.first;
    if (bytes.size < scan->row.header.bytes) {
        Error error = buffer_reset(buffer, 0);
        if (!error)
            error = message_scan_append_to(scan, FIELD_LIST_MESSAGES_RESPONSE_MESSAGES, buffer);
        if (error) return error;
        Slice rest = buffer_slice(buffer);
        WireField field;
        if (wire_next(&rest, &field)) bytes = field.bytes;
    }
    return message_text(scan->txn->arena, bytes, out);
}

Error preview_recompute_first(Txn *txn, Ulid session, Session *head)
{
    head->first_message_preview = (char *)(uintptr_t) "";
    MessageScan scan = {.cursor = NULL};
    Buffer buffer = {.bytes = NULL};
    Error error = message_scan_open(&scan, txn);
    Segment log = {session, ULID_ZERO, ULID_MAX};
    message_scan_start(&scan, &log, /* is_newest_first= */ false);
    const MessageRow *row;
    bool found = true;
    while (!error && !*head->first_message_preview) {
        error = message_scan_next(&scan, &found, &row);
        if (error || !found) break;
        if (!row_is_turn_of(row, ROLE_USER)) continue;
        Slice text;
        error = row_text(&scan, &buffer, &text);
        if (error || text.size == 0) continue;
        error = cut_copy(txn, text, FIRST_PREVIEW_BYTES_MAX, &head->first_message_preview);
    }
    message_scan_close(&scan);
    buffer_free(&buffer);
    return error;
}

// Calls `visit` for the session's own entries in the current history, newest first, until it sets
// `*out_stop`.
typedef struct OwnVisitor {
    Error (*visit)(struct OwnVisitor *visitor, MessageScan *scan, bool *out_stop);
    Session *head;
    Buffer buffer; // used by row_text
    bool has_user, has_agent;
    Ulid found_id;
} OwnVisitor;

static Error visit_own(Txn *txn, Ulid session, OwnVisitor *visitor)
{
    OriginWalk walk = {.cursor = NULL};
    MessageScan scan = {.cursor = NULL};
    Error error = origin_walk_begin(&walk, txn, session, ULID_MAX);
    if (!error) error = message_scan_open(&scan, txn);
    bool stop = false;
    while (!error && !stop) {
        Segment segment;
        bool found;
        error = origin_walk_next(&walk, &found, &segment);
        if (error || !found || !ulid_equal(segment.session, session)) break;
        message_scan_start(&scan, &segment, /* is_newest_first= */ true);
        const MessageRow *row;
        while (!error && !stop) {
            error = message_scan_next(&scan, &found, &row);
            if (error || !found) break;
            error = visitor->visit(visitor, &scan, &stop);
        }
    }
    message_scan_close(&scan);
    origin_walk_end(&walk);
    return error;
}

static Error visit_last(OwnVisitor *visitor, MessageScan *scan, bool *out_stop)
{
    const MessageRow *row = &scan->row;
    bool is_user = !visitor->has_user && row_is_turn_of(row, ROLE_USER);
    bool is_agent = !visitor->has_agent && row_is_turn_of(row, ROLE_ASSISTANT);
    if (!is_user && !is_agent) return ERROR_NONE;
    Slice text;
    Error error = row_text(scan, &visitor->buffer, &text);
    if (error || text.size == 0) return error;
    char **preview =
        is_user ? &visitor->head->last_user_message : &visitor->head->last_agent_message;
    error = cut_copy(scan->txn, text, LAST_PREVIEW_BYTES_MAX, preview);
    if (is_user) visitor->has_user = true;
    if (is_agent) visitor->has_agent = true;
    *out_stop = visitor->has_user && visitor->has_agent;
    return error;
}

Error preview_recompute_last(Txn *txn, Ulid session, Session *head)
{
    head->last_user_message = (char *)(uintptr_t) "";
    head->last_agent_message = (char *)(uintptr_t) "";
    OwnVisitor visitor = {.visit = visit_last, .head = head};
    Error error = visit_own(txn, session, &visitor);
    buffer_free(&visitor.buffer);
    return error;
}

static Error visit_user(OwnVisitor *visitor, MessageScan *scan, bool *out_stop)
{
    *out_stop = row_is_turn_of(&scan->row, ROLE_USER);
    if (*out_stop) visitor->found_id = scan->row.id;
    return ERROR_NONE;
}

Error preview_latest_user_message(Txn *txn, Ulid session, Ulid *out)
{
    OwnVisitor visitor = {.visit = visit_user};
    Error error = visit_own(txn, session, &visitor);
    if (error) return error;
    *out = visitor.found_id;
    return ERROR_NONE;
}
