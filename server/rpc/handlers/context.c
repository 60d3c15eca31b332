// Handler of BuildContext, which returns all that an agent needs to resume.

#include "rpc/handlers/handler.h"
#include "rpc/handlers/history.h"
#include "store/marker.h"
#include "store/memory.h"
#include "store/message_scan.h"
#include "store/todo.h"
#include "wire/wire.h"

static const char SETTING_MODEL[] = "model";

typedef struct Settings {
    Slice subtypes[SETTING_COUNT_MAX]; // in the Rpc's arena
    size_t count;
    ModelRef *model; // of the newest setting "model" …
    Ulid model_id;   // … in this entry
} Settings;

static Slice field_of(Slice first, uint32_t number)
{
    WireField field;
    while (wire_next(&first, &field) && field.number <= number) {
        if (field.number == number) return field.bytes;
    }
    return (Slice){NULL, 0};
}

static bool settings_know(const Settings *settings, Slice subtype)
{
    for (size_t i = 0; i < settings->count; i++) {
        if (slice_equal(settings->subtypes[i], subtype)) return true;
    }
    return false;
}

static Error decode_model(Rpc *rpc, Slice first, ModelRef **out)
{
    Slice bytes = field_of(first, FIELD_MESSAGE_MODEL);
    if (bytes.size == 0) return ERROR_NONE;
    return txn_decode(rpc->txn, &model_ref__descriptor, bytes, out);
}

// Leaves out what would make the reply too long: it can be read by a call of its own.
static void take_back_excess(Rpc *rpc, size_t before)
{
    if (buffer_size(&rpc->reply) > CONTEXT_BYTES_MAX) buffer_truncate(&rpc->reply, before);
}

// Notes a SETTING entry, which is older than all that were noted before.
static Error note_setting(Rpc *rpc, const MarkerPlace *place, Settings *settings)
{
    MessageHeader head;
    Slice first;
    Error error = message_first(rpc->txn, place->session, place->message, &head, &first);
    if (error) return error;
    Slice subtype = field_of(first, FIELD_MESSAGE_SUBTYPE);
    if (settings_know(settings, subtype)) return ERROR_NONE;
    if (slice_equal(subtype, slice_of(SETTING_MODEL))) {
        error = decode_model(rpc, first, &settings->model);
        if (error) return error;
        settings->model_id = place->message;
    }
    error = arena_copy(&rpc->arena, subtype, &settings->subtypes[settings->count++]);
    if (error) return error;
    size_t before = buffer_size(&rpc->reply);
    error = message_append_to(rpc->txn, place->session, place->message,
                              FIELD_BUILD_CONTEXT_RESPONSE_SETTINGS, &rpc->reply);
    take_back_excess(rpc, before);
    return error;
}

static Error append_settings(Rpc *rpc, const SegmentList *segments, Settings *settings)
{
    Ulid before = ULID_MAX;
    for (size_t scanned = 0; scanned < SCANNED_RECORDS_MAX; scanned++) {
        MarkerPlace place;
        Error error = marker_newest(rpc->txn, segments, MESSAGE_KIND_SETTING, before, &place);
        if (error || !place.is_found || settings->count == SETTING_COUNT_MAX) return error;
        error = note_setting(rpc, &place, settings);
        if (error) return error;
        before = place.message;
    }
    return ERROR_NONE;
}

// Finds the model of the newest assistant entry after `after` that has one. Changes nothing if
// there is none.
static Error assistant_model(Rpc *rpc, const SegmentList *segments, Ulid after, ModelRef **out)
{
    MessageScan scan;
    Error error = message_scan_open(&scan, rpc->txn);
    size_t scanned = 0;
    bool is_done = false;
    for (size_t i = 0; !error && !is_done && i < segments->count; i++) {
        message_scan_start(&scan, &segments->segments[i], /* is_newest_first= */ true);
        while (!error && !is_done && scanned++ < SCANNED_RECORDS_MAX) {
            const MessageRow *row;
            bool found;
            error = message_scan_next(&scan, &found, &row);
            if (error || !found) break;
            is_done = ulid_compare(row->id, after) <= 0;
            if (is_done || row->header.is_deleted) continue;
            if (row->header.kind != MESSAGE_KIND_CONVERSATION) continue;
            if (row->header.role != ROLE_ASSISTANT) continue;
            ModelRef *model = NULL;
            error = decode_model(rpc, row->first, &model);
            if (!model) continue;
            *out = model;
            is_done = true;
        }
    }
    message_scan_close(&scan);
    return error;
}

static Error first_page(Rpc *rpc, const HistoryPage *page, bool wants_newest_model,
                        BuildContextResponse *response)
{
    Session *head, *settings_record;
    Settings settings = {.count = 0};
    Error error = session_head(rpc->txn, page->session, &head);
    if (!error) error = session_settings(rpc->txn, page->session, &settings_record);
    size_t before = buffer_size(&rpc->reply);
    if (!error)
        error = todo_append_to(rpc->txn, page->session, FIELD_BUILD_CONTEXT_RESPONSE_TODOS,
                               &rpc->reply);
    take_back_excess(rpc, before);
    if (!error) error = append_settings(rpc, &page->segments, &settings);
    ModelRef *model = settings.model;
    if (!error && (!model || wants_newest_model)) {
        error = assistant_model(rpc, &page->segments, settings.model_id, &model);
    }
    if (error) return error;
    response->model = model || wants_newest_model ? model : settings_record->model;
    response->head_id = head->head_id;
    Ulid last;
    before = buffer_size(&rpc->reply);
    error = memory_append_page(rpc->txn, page->session, ULID_ZERO, UINT32_MAX, CONTEXT_BYTES_MAX,
                               FIELD_BUILD_CONTEXT_RESPONSE_MEMORIES, &rpc->reply, &last);
    take_back_excess(rpc, before);
    return error;
}

// BuildContext: returns the live window and the settings that apply.
Error handle_build_context(Rpc *rpc, const BuildContextRequest *request,
                           BuildContextResponse *response)
{
    static const MessageKind KINDS[] = {
        MESSAGE_KIND_CONVERSATION,
        MESSAGE_KIND_INJECTED,
        MESSAGE_KIND_BRANCH_SUMMARY,
    };
    HistoryRequest history = {
        .session_id = request->session_id,
        .kinds = KINDS,
        .kind_count = sizeof(KINDS) / sizeof(*KINDS),
        .limit = request->limit,
        .cursor = request->cursor,
        .page_bytes = request->page_bytes,
        .through_message_id = request->through_message_id,
    };
    HistoryPage page;
    Error error = history_begin(rpc, &history, &page);
    if (!error) error = history_window(rpc, &page, FIELD_BUILD_CONTEXT_RESPONSE_MARKER);
    if (!error && !page.is_later_page) {
        error = first_page(rpc, &page, request->newest_model, response);
    }
    return error ? error : history_finish(rpc, &page, &response->next_cursor);
}
