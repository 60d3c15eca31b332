// Operations on entries: appending, deleting, purging.

#include <stdlib.h>

#include "base/limits.h"
#include "operate.h"
#include "text/utf8.h"

MessageKind operate_random_kind(Run *run)
{
    static const MessageKind KINDS[] = {
        MESSAGE_KIND_INJECTED, MESSAGE_KIND_BRANCH_SUMMARY, MESSAGE_KIND_COMPACTION,
        MESSAGE_KIND_SETTING,  MESSAGE_KIND_LABEL,          MESSAGE_KIND_NAME,
        MESSAGE_KIND_CUSTOM,
    };
    if (run_chance(run, 70)) return MESSAGE_KIND_CONVERSATION;
    return KINDS[run_below(run, sizeof(KINDS) / sizeof(*KINDS))];
}

External *operate_random_external(Run *run)
{
    External *external = RUN_NEW(run, External);
    tine__v1__external__init(external);
    external->source = text_of(run_chance(run, 50) ? "pi" : "hecate");
    external->id = run_text(run, "m-%llu", (unsigned long long)run_below(run, 40));
    return external;
}

Entry *operate_external_holder(const ModelSession *session, const External *external)
{
    unsigned number = (unsigned)strtoul(external->id + 2, NULL, 10);
    for (size_t i = 0; i < session->entry_count; i++) {
        Entry *entry = session->entries[i];
        if (!entry->external_source || entry->external_number != number) continue;
        if (strcmp(entry->external_source, external->source) == 0) return entry;
    }
    return NULL;
}

Cut operate_random_cut(Run *run, ModelSession *session, bool is_required)
{
    Cut cut = {.at = {.id = "", .reason = ""}, .malformed = ""};
    Marker *marker = cut.marker = RUN_NEW(run, Marker);
    tine__v1__marker__init(marker);
    marker->summary = content_text(run);
    marker->tokens_saved = (int64_t)run_below(run, 1000);
    marker->automatic = run_chance(run, 50);
    uint64_t die = run_below(run, 20);
    if (die < 3) {
        marker->keep_all = true;
    } else if (die < 5 && !is_required) {
        marker->first_kept_external = text_of("m-1");
    } else if (die < 6 && is_required) {
        cut.malformed = "INVALID_ARGUMENT";
    } else {
        cut.at = pick_entry(run, session);
        marker->before_message_id = text_of(cut.at.id);
        if (strcmp(cut.at.reason, "INVALID_ARGUMENT") == 0) cut.malformed = cut.at.reason;
    }
    return cut;
}

const char *operate_cut_refusal(const Cut *cut, const Entry *head)
{
    if (*cut->at.reason) return cut->at.reason;
    if (!cut->at.entry || model_history_holds(head, cut->at.entry)) return "";
    return "INVALID_ARGUMENT";
}

// The latest name is the title.
static void take_name(Run *run, Session *record, const char *name)
{
    Slice title = utf8_trim(utf8_cut(utf8_trim(slice_of(name)), TITLE_BYTES_MAX));
    if (slice_equal(title, slice_of(record->title))) return;
    char *text = run_alloc(run, title.size + 1);
    memcpy(text, title.bytes, title.size);
    text[title.size] = '\0';
    record_set(&record->title, text);
    record->updated_at = run->now_ms;
}

Entry *operate_entry_appended(Run *run, ModelSession *session, const NewMessage *sent,
                              const Receipt *receipt, Entry *parent)
{
    run_new_id(run, receipt->id);
    RUN_CHECK(run, strcmp(receipt->session_id, session->id) == 0);
    RUN_CHECK(run, strcmp(receipt->parent_id, parent ? parent->id : "") == 0);
    RUN_CHECK(run, receipt->sequence == session->entry_count);
    int64_t created_at = sent->created_at ? sent->created_at : run->now_ms;
    RUN_CHECK(run, receipt->created_at == created_at);
    RUN_CHECK(run, receipt->n_part_ids == sent->n_parts);
    for (size_t i = 0; i < sent->n_parts; i++) {
        const char *given = sent->parts[i]->id;
        if (*given) {
            RUN_CHECK(run, strcmp(receipt->part_ids[i], given) == 0);
        } else {
            run_new_id(run, receipt->part_ids[i]);
        }
    }
    Entry *entry = model_entry_add(session, receipt->id, parent);
    entry->created_at = created_at;
    content_note(entry, sent);
    if (sent->kind == MESSAGE_KIND_NAME) take_name(run, session->record, sent->text);
    if (sent->external) {
        entry->external_source = strcmp(sent->external->source, "pi") ? "hecate" : "pi";
        entry->external_number = (unsigned)strtoul(sent->external->id + 2, NULL, 10);
    }
    return entry;
}

void operate_entry_cut(Entry *entry, const Cut *cut)
{
    entry->is_marker_open = !cut->marker->keep_all && !cut->at.entry;
    entry->cut_off = cut->at.entry;
}

void operate_append_event(Run *run, ModelSession *session, const Entry *entry,
                          TotalsUpdate **updates, size_t count)
{
    bool is_marker = entry->kind == MESSAGE_KIND_COMPACTION;
    ExpectedEvent *event =
        run_event(run, session, session->id, is_marker ? "marker.added" : "message.appended");
    memcpy(event->message_id, entry->id, ID_BYTES);
    event->role = entry->role;
    operate_event_totals(event, updates, count);
}

typedef struct Append {
    AppendMessageRequest request;
    SessionPick pick;
    EntryPick parent;
    Cut cut;
    Entry *after; // the entry's place
    const char *reason;
} Append;

// Decides who is named, and how it must end; in the order in which the contract looks at things.
static void append_prepare(Run *run, Append *append, MessageKind kind)
{
    AppendMessageRequest *request = &append->request;
    tine__v1__append_message_request__init(request);
    append->pick = pick_session(run);
    ModelSession *session = append->pick.session;
    request->session_id = text_of(append->pick.id);
    NewMessage *message = request->message = content_message(run, kind);
    append->after = session ? session->head : NULL;
    append->reason = pick_refusal(&append->pick);
    if (pick_expected_head(run, &append->pick, &request->expected_head_id, &append->reason)) {
        request->expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    }
    append->parent = (EntryPick){.id = "", .reason = ""};
    if (run_chance(run, 10)) {
        if (run_below(run, 100)) append->parent = pick_entry(run, session);
        request->parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
        request->parent_id = text_of(append->parent.id);
        if (!*append->reason) append->reason = append->parent.reason;
        append->after = append->parent.entry;
        if (session && append->after && !model_in_tree(&run->model, session, append->after) &&
            !*append->reason) {
            append->reason = "NOT_IN_TREE";
        }
    }
    if (run_chance(run, 8)) {
        message->external = operate_random_external(run);
        bool is_held = session && operate_external_holder(session, message->external);
        if (is_held && !*append->reason) append->reason = "EXTERNAL_TAKEN";
    }
    append->cut.malformed = "";
    if (kind == MESSAGE_KIND_COMPACTION) {
        append->cut = operate_random_cut(run, session, /* is_required= */ false);
        message->marker = append->cut.marker;
        if (!*append->reason) append->reason = operate_cut_refusal(&append->cut, append->after);
    }
}

void operate_append(Run *run)
{
    Append append;
    MessageKind kind = operate_random_kind(run);
    append_prepare(run, &append, kind);
    AppendMessageRequest *request = &append.request;
    ModelSession *session = append.pick.session;
    request->propagate_usage = run_chance(run, 15);
    const char *reason = append.reason;
    bool is_malformed = strcmp(append.pick.reason, "INVALID_ARGUMENT") == 0 ||
                        strcmp(append.parent.reason, "INVALID_ARGUMENT") == 0 ||
                        *append.cut.malformed;
    if (is_malformed) {
        reason = "INVALID_ARGUMENT";
    } else if (run_below(run, 40) == 0) {
        reason = content_break(run, request->message);
    }

    AppendMessageResponse *response = RUN_CALL(run, APPEND_MESSAGE, AppendMessage, request, reason);
    if (!response) return;
    const NewMessage *sent = request->message;
    Entry *entry = operate_entry_appended(run, session, sent, response->receipt, append.after);
    if (kind == MESSAGE_KIND_COMPACTION) operate_entry_cut(entry, &append.cut);
    Message whole = content_expected(sent, response->receipt);
    content_set(run, entry, &whole);

    Receipt expected = *response->receipt;
    expected.totals = NULL;
    expected.n_totals = 0;
    if (request->propagate_usage && entry->has_usage) {
        expected.totals = operate_propagate(run, session, &entry->usage, &expected.n_totals);
    }
    run_compare(run, "receipt", &response->receipt->base, &expected.base);
    operate_append_event(run, session, entry, expected.totals, expected.n_totals);
}

void operate_grow(Run *run, ModelSession *session, size_t count)
{
    SessionPick pick = {session->id, session, ""};
    if (*pick_refusal(&pick) || run->event_count + count > run->event_count_max / 2) return;
    for (size_t i = 0; i < count; i++) {
        AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
        NewMessage sent = NEW_MESSAGE__INIT;
        sent.role = ROLE_TOOL;
        request.session_id = session->id;
        request.message = &sent;
        AppendMessageResponse *response =
            RUN_CALL(run, APPEND_MESSAGE, AppendMessage, &request, "");
        Entry *parent = session->head;
        Entry *entry = operate_entry_appended(run, session, &sent, response->receipt, parent);
        Message whole = content_expected(&sent, response->receipt);
        content_set(run, entry, &whole);
        operate_append_event(run, session, entry, NULL, 0);
    }
}

void operate_add_marker(Run *run)
{
    AddCompactionMarkerRequest request = ADD_COMPACTION_MARKER_REQUEST__INIT;
    SessionPick pick = pick_session(run);
    ModelSession *session = pick.session;
    request.session_id = text_of(pick.id);
    Cut cut = operate_random_cut(run, session, /* is_required= */ true);
    request.marker = cut.marker;
    const char *reason = pick_refusal(&pick);
    if (pick_expected_head(run, &pick, &request.expected_head_id, &reason)) {
        request.expected_head_case = ADD_COMPACTION_MARKER_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
    }
    if (!*reason) reason = operate_cut_refusal(&cut, session->head);
    if (*cut.malformed || strcmp(pick.reason, "INVALID_ARGUMENT") == 0) reason = "INVALID_ARGUMENT";
    AddCompactionMarkerResponse *response =
        RUN_CALL(run, ADD_COMPACTION_MARKER, AddCompactionMarker, &request, reason);
    if (!response) return;
    NewMessage sent = NEW_MESSAGE__INIT;
    sent.kind = MESSAGE_KIND_COMPACTION;
    sent.marker = cut.marker;
    Receipt receipt = RECEIPT__INIT;
    Entry *parent = session->head;
    receipt.id = response->entry->id;
    receipt.session_id = session->id;
    receipt.parent_id = text_of(parent ? parent->id : "");
    receipt.sequence = session->entry_count;
    receipt.created_at = run->now_ms;
    Entry *entry = operate_entry_appended(run, session, &sent, &receipt, parent);
    operate_entry_cut(entry, &cut);
    Message whole = content_expected(&sent, &receipt);
    content_set(run, entry, &whole);
    run_compare(run, "marker", &response->entry->base, &whole.base);
    operate_append_event(run, session, entry, NULL, 0);
}

EntryPick pick_victim(Run *run, const char **out_reason)
{
    SessionPick pick = pick_session(run);
    EntryPick victim = pick_entry(run, pick.session);
    *out_reason = victim.reason;
    if (!victim.entry) return victim;
    ModelSession *owner = victim.entry->owner;
    SessionPick owner_pick = {owner->id, owner, owner->is_tombstone ? "SESSION_NOT_FOUND" : ""};
    *out_reason = pick_refusal(&owner_pick);
    return victim;
}

Message *operate_read_entry(Run *run, Entry *entry)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = entry->id;
    GetMessageResponse *response = RUN_CALL(run, GET_MESSAGE, GetMessage, &request, "");
    entry->is_verified = false;
    content_check(run, response->message, entry);
    return response->message;
}

ExpectedEvent *operate_changed(Run *run, Entry *entry, const Message *now, const char *event_type)
{
    content_set(run, entry, now);
    entry->is_verified = false;
    ModelSession *owner = entry->owner;
    ExpectedEvent *event = run_event(run, owner, owner->id, event_type);
    memcpy(event->message_id, entry->id, ID_BYTES);
    event->role = entry->role;
    return event;
}

void operate_check_receipt(Run *run, const Receipt *actual, const Entry *entry)
{
    Receipt expected = RECEIPT__INIT;
    expected.id = text_of(entry->id);
    expected.session_id = entry->owner->id;
    expected.parent_id = entry->parent ? entry->parent->id : text_of("");
    expected.sequence = entry->sequence;
    expected.created_at = entry->created_at;
    run_compare(run, "receipt", &actual->base, &expected.base);
}

void operate_delete_message(Run *run)
{
    DeleteMessageRequest request = DELETE_MESSAGE_REQUEST__INIT;
    const char *reason;
    EntryPick victim = pick_victim(run, &reason);
    Message *message = *reason ? NULL : operate_read_entry(run, victim.entry);
    request.message_id = text_of(victim.id);
    DeleteMessageResponse *response =
        RUN_CALL(run, DELETE_MESSAGE, DeleteMessage, &request, reason);
    if (!response) return;
    Entry *entry = victim.entry;
    operate_check_receipt(run, response->receipt, entry);
    if (entry->deleted_at) return;
    entry->deleted_at = message->deleted_at = run->now_ms;
    (void)operate_changed(run, entry, message, "message.deleted");
}

// What of a message is left. The memory is the response's.
static Message emptied(const Message *message, Marker *marker)
{
    Message left = *message;
    left.name = left.text = left.data_json = text_of("");
    left.external = NULL;
    left.error = NULL;
    left.parts = NULL;
    left.n_parts = 0;
    if (!left.marker) return left;
    *marker = *left.marker;
    marker->summary = marker->details_json = marker->first_kept_external = text_of("");
    left.marker = marker;
    return left;
}

void operate_purge_message(Run *run)
{
    PurgeMessageRequest request = PURGE_MESSAGE_REQUEST__INIT;
    const char *reason;
    EntryPick victim = pick_victim(run, &reason);
    Message *message = *reason ? NULL : operate_read_entry(run, victim.entry);
    request.message_id = text_of(victim.id);
    PurgeMessageResponse *response = RUN_CALL(run, PURGE_MESSAGE, PurgeMessage, &request, reason);
    if (!response) return;
    Entry *entry = victim.entry;
    operate_check_receipt(run, response->receipt, entry);
    if (entry->is_purged) return;
    entry->is_purged = true;
    entry->has_original = entry->has_parts = false;
    free(entry->text);
    entry->text = NULL;
    entry->external_source = NULL;
    Marker marker;
    Message left = emptied(message, &marker);
    (void)operate_changed(run, entry, &left, "message.purged");
}

void operate_get_message(Run *run)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    SessionExternal by = SESSION_EXTERNAL__INIT;
    SessionPick pick = pick_session(run);
    const char *reason;
    Entry *entry;
    if (run_chance(run, 50)) {
        EntryPick wanted = pick_entry(run, pick.session);
        request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
        request.message_id = text_of(wanted.id);
        reason = wanted.reason;
        entry = wanted.entry;
    } else {
        request.by_case = GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL;
        request.session_external = &by;
        by.session_id = text_of(pick.id);
        by.external = operate_random_external(run);
        entry = pick.session ? operate_external_holder(pick.session, by.external) : NULL;
        reason = *pick.reason ? pick.reason : (entry ? "" : "MESSAGE_NOT_FOUND");
    }
    GetMessageResponse *response = RUN_CALL(run, GET_MESSAGE, GetMessage, &request, reason);
    if (!response) return;
    entry->is_verified = false;
    content_check(run, response->message, entry);
}
