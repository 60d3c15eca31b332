// The export: the header, what a fork inherited, then the session's log and its originals side by
// side, both in the order of the log.

#include "importers/pi/pi_export.h"

#include "importers/pi/pi_inherited.h"
#include "importers/pi/pi_line.h"
#include "importers/pi/pi_own_order.h"

enum { ARENA_BYTES_MAX = 64 * 1024 * 1024, HELD_BYTES_MAX = 64 * 1024 * 1024 };

static int write_counted(PiExport *export, const Message *message, const Original *original)
{
    *export->bytes_done +=
        original ? original->content.len : protobuf_c_message_get_packed_size(&message->base);
    return pi_line_write(export, message, original);
}

// Writes the entries that were held and are next in the file; with `is_end`, all of them.
static int write_held(PiExport *export, PiOwnOrder *order, bool is_end)
{
    PiHeld held;
    int code = STATUS_OK;
    while (!code && pi_own_order_take(order, is_end, &held)) {
        code = write_counted(export, held.message, held.original);
        reply_freep(&held.message);
        reply_freep(&held.original);
    }
    return code;
}

// Writes an entry of the log, or holds it back until its turn in the file. What has no original is
// not from the file: all that is held was there before it. Takes `message`.
static int write_in_order(PiExport *export, PiOwnOrder *order, Message *message)
{
    CLEANUP(reply_freep) Message *owned = message;
    CLEANUP(reply_freep) Original *original = NULL;
    uint32_t position = export->is_verbatim ? pi_position_of(message) : UINT32_MAX;
    int code =
        pi_originals_take(&export->originals, export->tine, export->call, message->id, &original);
    if (code) return code;
    if (position != UINT32_MAX) {
        Error error = pi_own_order_hold(order, position, message, original);
        owned = NULL;
        original = NULL;
        if (error) return pi_export_fail_memory(export);
        return order->bytes > HELD_BYTES_MAX ? write_held(export, order, /* is_end= */ true)
                                             : STATUS_OK;
    }
    code = write_held(export, order, /* is_end= */ !original);
    if (!code) code = write_counted(export, message, original);
    if (original) order->next++;
    return code;
}

static int write_log(PiExport *export)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *reply = NULL;
    CLEANUP(pi_own_order_free) PiOwnOrder order = {.held = NULL};
    request.session_id = export->session->id;
    request.deleted = DELETED_FILTER_INCLUDE;
    int code = STATUS_OK;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(export->tine, export->call, &request, &next)) {
            return pi_export_fail_call(export);
        }
        reply_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages && !code; i++) {
            Message *message = reply->messages[i];
            reply->messages[i] = NULL;
            code = write_in_order(export, &order, message);
        }
        request.cursor = reply->next_cursor;
    } while (!code && *request.cursor);
    return code ? code : write_held(export, &order, /* is_end= */ true);
}

// A file of version 1 has no IDs, so that nothing can be added to it: it comes back as it was only
// if nothing was.
static int begin_log(PiExport *export)
{
    const Session *session = export->session;
    bool has_lines = pi_is_external(session->external);
    pi_export_use_originals(export, session, /* is_verbatim= */ has_lines);
    if (!has_lines) pi_originals_end(&export->originals);
    if (!has_lines || export->version > 1) return STATUS_OK;
    uint64_t count = 0;
    int code = pi_originals_count(session->id, export->tine, export->call, &count);
    export->is_verbatim = count == session->next_sequence;
    return code;
}

static int write_session(PiExport *export)
{
    const Session *session = export->session;
    int code = begin_log(export);
    if (!code) code = pi_line_write_header(export);
    if (!code && *session->fork_message_id) {
        code = pi_inherited_write(export);
        if (!code) code = begin_log(export);
    }
    if (!code) code = write_log(export);
    bool is_original = export->is_verbatim && session->next_sequence > 0;
    if (!code && !is_original) pi_line_end(export);
    return code ? code : pi_export_check_output(export);
}

int pi_export(Tine *tine, const TineCallOptions *call, const char *session, FILE *out,
              atomic_uint_fast64_t *bytes_done)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)session;
    int code = tine_get_session(tine, call, &request, &reply);
    if (code) return code;
    PiExport export = {.tine = tine,
                       .call = call,
                       .out = out,
                       .session = reply->session,
                       .bytes_done = bytes_done};
    arena_init(&export.arena, ARENA_BYTES_MAX);
    code = write_session(&export);
    pi_originals_end(&export.originals);
    pi_aliases_free(&export.aliases);
    arena_free(&export.arena);
    return code;
}
