// Exchanges: several messages at once, with the call that produced them; and a history sent again.

#include <stdlib.h>

#include "base/limits.h"
#include "compare.h"
#include "operate.h"

enum { MESSAGE_COUNT_MAX = 5, HISTORY_COUNT_MAX = 300, PICK_TRIES = 6, TAIL_COUNT_MAX = 3 };

typedef struct Sending {
    AppendExchangeRequest request;
    SessionPick pick;
    Entry *after;       // where the first message goes
    const char *reason; // in the order in which the contract looks at things
    CallRecord call;
    NewCall new_call;
    Cut cuts[MESSAGE_COUNT_MAX]; // of each message that is a marker's entry
    size_t first;                // the messages before it are in the history already
} Sending;

// Calls the head that is expected by its external id, if it has one and is the session's own.
static void sending_expect_external(Run *run, Sending *sending)
{
    AppendExchangeRequest *request = &sending->request;
    const Entry *head = sending->pick.session->head;
    bool is_head = head && head->owner == sending->pick.session &&
                   strcmp(head->id, request->expected_head_id) == 0;
    if (!is_head || !head->external_source || run_chance(run, 50)) return;
    External *external = RUN_NEW(run, External);
    tine__v1__external__init(external);
    external->source = text_of(head->external_source);
    external->id = run_text(run, "m-%u", head->external_number);
    request->expected_head_external = external;
    request->expected_head_case = APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_EXTERNAL;
}

static void sending_begin(Run *run, Sending *sending, SessionPick pick)
{
    AppendExchangeRequest *request = &sending->request;
    tine__v1__append_exchange_request__init(request);
    sending->pick = pick;
    sending->after = pick.session ? pick.session->head : NULL;
    sending->reason = pick_refusal(&pick);
    sending->first = 0;
    request->session_id = text_of(pick.id);
    request->propagate_usage = run_chance(run, 30);
    if (pick_expected_head(run, &sending->pick, &request->expected_head_id, &sending->reason)) {
        request->expected_head_case = APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID;
        sending_expect_external(run, sending);
    }
}

// Must follow what is looked at before.
static void sending_call(Run *run, Sending *sending)
{
    if (run_chance(run, 40)) return;
    sending->call = (CallRecord)CALL_RECORD__INIT;
    operate_random_call(run, &sending->call);
    const ModelSession *session = sending->pick.session;
    if (session && session->call_count && run_chance(run, 30)) { // as if it were sent again
        const CallRecord *like = session->calls[run_below(run, session->call_count)];
        sending->call.request_id = text_of(like->request_id);
    }
    sending->new_call = operate_new_call(&sending->call);
    sending->request.call = &sending->new_call;
    const External *external = sending->call.external;
    bool is_taken = external && operate_call_is_taken(&run->model, external);
    bool is_new = sending->first < sending->request.n_messages;
    if (is_taken && is_new && !*sending->reason) sending->reason = "EXTERNAL_TAKEN";
}

// Whether a replay without a new message leaves its call out.
static bool call_is_known(Run *run, const Sending *sending)
{
    const NewCall *call = sending->request.call;
    const ModelSession *session = sending->pick.session;
    if (call->external) return operate_call_is_taken(&run->model, call->external);
    for (size_t i = session->call_count; i > 0; i--) {
        if (session->call_count - i == REPLAY_CALL_COUNT_MAX) return false;
        if (strcmp(session->calls[i - 1]->request_id, call->request_id) == 0) return true;
    }
    return false;
}

// Whether the message is one of those at the end that the request's call produced.
static bool is_produced(const AppendExchangeRequest *request, size_t index)
{
    if (!request->call || *request->messages[index]->call_id) return false;
    for (size_t i = index; i < request->n_messages; i++) {
        if (request->messages[i]->role != ROLE_ASSISTANT) return false;
    }
    return true;
}

// `call_id` is NULL if the call did not produce it.
static Entry *message_appended(Run *run, const Sending *sending, size_t index,
                               const Receipt *receipt, char *call_id)
{
    ModelSession *session = sending->pick.session;
    NewMessage *sent = sending->request.messages[index];
    Entry *parent = index == sending->first ? sending->after : session->head;
    Entry *entry = operate_entry_appended(run, session, sent, receipt, parent);
    RUN_CHECK(run, receipt->n_totals == 0);
    if (sent->marker) operate_entry_cut(entry, &sending->cuts[index]);
    Message whole = content_expected(sent, receipt);
    if (call_id) {
        whole.call_id = call_id;
        snprintf(entry->call_id, sizeof(entry->call_id), "%s", call_id);
    }
    content_set(run, entry, &whole);
    operate_append_event(run, session, entry, NULL, 0);
    return entry;
}

static void totals_check(Run *run, const AppendExchangeResponse *response, TotalsUpdate **updates,
                         size_t count)
{
    RUN_CHECK(run, response->n_totals == count);
    for (size_t i = 0; i < count; i++) {
        run_compare(run, "exchange's totals", &response->totals[i]->base, &updates[i]->base);
    }
}

static void call_appended(Run *run, Sending *sending, const AppendExchangeResponse *response)
{
    ModelSession *session = sending->pick.session;
    CallRecord *call = &sending->call;
    call->id = response->call->id;
    call->session_id = session->id;
    if (call->created_at == 0) call->created_at = run->now_ms;
    CallReceipt expected = CALL_RECEIPT__INIT;
    expected.id = call->id;
    expected.session_id = session->id;
    expected.created_at = call->created_at;
    run_compare(run, "exchange's call", &response->call->base, &expected.base);
    TotalsUpdate **updates = NULL;
    size_t count = 0;
    if (sending->request.propagate_usage && call->usage) {
        Totals delta = TOTALS__INIT;
        delta.input_tokens = call->usage->input_tokens;
        delta.cost_nano_usd = call->usage->cost_nano_usd;
        updates = operate_propagate(run, session, &delta, &count);
        totals_check(run, response, updates, count);
    }
    operate_call_recorded(run, session, call, updates, count);
}

// Without a call that has usage, that of the messages is added.
static void messages_propagate(Run *run, const Sending *sending, const Totals *sum, bool has_usage,
                               const AppendExchangeResponse *response)
{
    const AppendExchangeRequest *request = &sending->request;
    if (!request->propagate_usage) {
        RUN_CHECK(run, response->n_totals == 0);
        return;
    }
    if (request->call && request->call->usage) return;
    TotalsUpdate **updates = NULL;
    size_t count = 0;
    if (has_usage) {
        ModelSession *session = sending->pick.session;
        updates = operate_propagate(run, session, sum, &count);
        operate_event_totals(run_event(run, session, session->id, "totals.updated"), updates,
                             count);
    }
    totals_check(run, response, updates, count);
}

// Sends it, checks the reply, and does the same to the model.
static void sending_send(Run *run, Sending *sending)
{
    AppendExchangeRequest *request = &sending->request;
    AppendExchangeResponse *response =
        RUN_CALL(run, APPEND_EXCHANGE, AppendExchange, request, sending->reason);
    if (!response) return;
    size_t count = request->n_messages - sending->first;
    RUN_CHECK(run, response->skipped_count == sending->first);
    RUN_CHECK(run, response->n_receipts == count);
    bool has_call = request->call && (count > 0 || !call_is_known(run, sending));
    RUN_CHECK(run, (response->call != NULL) == has_call);
    if (count == 0 && !has_call) RUN_CHECK(run, response->n_totals == 0);
    if (response->call) run_new_id(run, response->call->id); // issued before the messages'
    Totals sum = TOTALS__INIT;
    bool has_usage = false;
    for (size_t i = sending->first; i < request->n_messages; i++) {
        char *call_id = is_produced(request, i) ? response->call->id : NULL;
        const Receipt *receipt = response->receipts[i - sending->first];
        Entry *entry = message_appended(run, sending, i, receipt, call_id);
        has_usage = has_usage || entry->has_usage;
        if (entry->has_usage) totals_plus(&sum, &entry->usage);
        if (request->n_originals > 0 && request->originals[i]->content.len > 0) {
            operate_original_note(entry, request->originals[i]->content);
        }
    }
    if (response->call) call_appended(run, sending, response);
    messages_propagate(run, sending, &sum, has_usage, response);
}

static bool is_sent_before(const AppendExchangeRequest *request, size_t index)
{
    const External *external = request->messages[index]->external;
    for (size_t i = 0; i < index; i++) {
        const External *other = request->messages[i]->external;
        if (other && strcmp(other->source, external->source) == 0 &&
            strcmp(other->id, external->id) == 0) {
            return true;
        }
    }
    return false;
}

static void random_messages(Run *run, Sending *sending)
{
    AppendExchangeRequest *request = &sending->request;
    size_t count = request->n_messages = 1 + run_below(run, MESSAGE_COUNT_MAX);
    request->messages = run_alloc(run, count * sizeof(NewMessage *));
    for (size_t i = 0; i < count; i++) {
        MessageKind kind = operate_random_kind(run);
        request->messages[i] = content_message(run, kind);
        if (kind == MESSAGE_KIND_COMPACTION) {
            sending->cuts[i] =
                operate_random_cut(run, sending->pick.session, /* is_required= */ false);
            request->messages[i]->marker = sending->cuts[i].marker;
        }
        if (run_chance(run, 3)) request->messages[i]->external = operate_random_external(run);
    }
}

// One for each message, some of them none.
static void random_originals(Run *run, AppendExchangeRequest *request)
{
    request->n_originals = request->n_messages;
    request->originals = run_alloc(run, request->n_messages * sizeof(NewOriginal *));
    for (size_t i = 0; i < request->n_messages; i++) {
        NewOriginal *original = request->originals[i] = RUN_NEW(run, NewOriginal);
        tine__v1__new_original__init(original);
        if (run_chance(run, 70)) original->content = operate_random_original(run);
    }
}

// One message after the other, what the store alone can say of it. A cut-off is an entry that was
// there before, so it is looked for from where the first message goes.
static void messages_expect(Sending *sending)
{
    const AppendExchangeRequest *request = &sending->request;
    const ModelSession *session = sending->pick.session;
    for (size_t i = 0; i < request->n_messages && !*sending->reason; i++) {
        const NewMessage *message = request->messages[i];
        bool is_taken = message->external && (operate_external_holder(session, message->external) ||
                                              is_sent_before(request, i));
        if (is_taken) {
            sending->reason = "EXTERNAL_TAKEN";
        } else if (message->marker) {
            sending->reason = operate_cut_refusal(&sending->cuts[i], sending->after);
        }
    }
}

static bool has_malformed_cut(const Sending *sending)
{
    for (size_t i = 0; i < sending->request.n_messages; i++) {
        bool is_marker = sending->request.messages[i]->marker != NULL;
        if (is_marker && *sending->cuts[i].malformed) return true;
    }
    return false;
}

// Returns whether the parent's id is no id.
static bool random_parent(Run *run, Sending *sending, const char **out_reason)
{
    ModelSession *session = sending->pick.session;
    EntryPick parent = {.id = "", .reason = ""};
    *out_reason = "";
    if (!run_chance(run, 10)) return false;
    if (run_below(run, 100)) parent = pick_entry(run, session);
    sending->request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    sending->request.parent_id = text_of(parent.id);
    sending->after = parent.entry;
    *out_reason = parent.reason;
    bool is_elsewhere =
        session && parent.entry && !model_in_tree(&run->model, session, parent.entry);
    if (is_elsewhere) *out_reason = "NOT_IN_TREE";
    return strcmp(parent.reason, "INVALID_ARGUMENT") == 0;
}

void operate_exchange(Run *run)
{
    Sending sending;
    const char *parent_reason;
    sending_begin(run, &sending, pick_session(run));
    random_messages(run, &sending);
    if (run_chance(run, 25)) random_originals(run, &sending.request);
    sending_call(run, &sending);
    bool is_malformed = random_parent(run, &sending, &parent_reason) ||
                        strcmp(sending.pick.reason, "INVALID_ARGUMENT") == 0 ||
                        has_malformed_cut(&sending);
    if (!*sending.reason) sending.reason = parent_reason;
    messages_expect(&sending);
    AppendExchangeRequest *request = &sending.request;
    if (is_malformed) {
        sending.reason = "INVALID_ARGUMENT";
    } else if (run_below(run, 40) == 0) {
        sending.reason = content_break(run, request->messages[run_below(run, request->n_messages)]);
    } else if (run_below(run, 100) == 0) {
        bool has_originals = request->n_originals > 0; // one too many, then
        request->n_messages = has_originals ? request->n_messages - 1 : 0;
        sending.reason = "INVALID_ARGUMENT";
    }
    sending_send(run, &sending);
}

static ToolResult *result_told(Run *run, const ToolResult *from)
{
    ToolResult *result = RUN_NEW(run, ToolResult);
    tine__v1__tool_result__init(result);
    result->tool_use_id = from->tool_use_id;
    result->content = from->content;
    result->is_error = from->is_error;
    result->attachments = from->attachments; // the generator's are images
    result->n_attachments = from->n_attachments;
    return result;
}

static ToolUse *use_told(Run *run, const ToolUse *from)
{
    ToolUse *use = RUN_NEW(run, ToolUse);
    *use = *from;
    use->state = TOOL_STATE_UNSPECIFIED;
    use->title = text_of("");
    return use;
}

// Of a part what a model is told, which a replay compares.
static Part *part_told(Run *run, const Part *from)
{
    Part *part = RUN_NEW(run, Part);
    *part = *from;
    part->id = part->metadata_json = text_of("");
    part->started_at = part->ended_at = 0;
    if (part->kind_case == PART__KIND_TEXT) {
        part->text = RUN_NEW(run, Text);
        tine__v1__text__init(part->text);
        part->text->text = from->text->text;
    } else if (part->kind_case == PART__KIND_TOOL_USE) {
        part->tool_use = use_told(run, from->tool_use);
    } else if (part->kind_case == PART__KIND_TOOL_RESULT) {
        part->tool_result = result_told(run, from->tool_result);
    } else if (part->kind_case == PART__KIND_FILE) {
        part->file = RUN_NEW(run, File);
        *part->file = *from->file;
        part->file->source_json = text_of("");
    }
    return part;
}

static Part **parts_told(Run *run, Part *const *parts, size_t count)
{
    Part **told = run_alloc(run, count * sizeof(Part *));
    for (size_t i = 0; i < count; i++)
        told[i] = part_told(run, parts[i]);
    return told;
}

// A stored message as a client sends it again.
static NewMessage *sent_again(Run *run, const Message *stored)
{
    NewMessage *message = RUN_NEW(run, NewMessage);
    tine__v1__new_message__init(message);
    message->kind = stored->kind;
    message->role = stored->role;
    message->other_role = stored->other_role;
    message->name = stored->name;
    message->parts = parts_told(run, stored->parts, stored->n_parts);
    message->n_parts = stored->n_parts;
    if (run_chance(run, 20)) message->usage = content_usage(run); // may differ
    if (run_chance(run, 20)) message->model = content_model(run);
    if (run_chance(run, 20)) message->created_at = run->now_ms + 1;
    return message;
}

// The hash of all that a replay compares.
static Hash likeness(Run *run, const NewMessage *message)
{
    NewMessage told = NEW_MESSAGE__INIT;
    told.kind = message->kind ? message->kind : MESSAGE_KIND_CONVERSATION;
    told.role = message->role;
    told.other_role = message->other_role;
    told.name = message->name;
    told.parts = parts_told(run, message->parts, message->n_parts);
    told.n_parts = message->n_parts;
    size_t size = tine__v1__new_message__get_packed_size(&told);
    uint8_t *bytes = run_alloc(run, size);
    tine__v1__new_message__pack(&told, bytes);
    return hash_bytes(slice(bytes, size));
}

static bool is_like(Run *run, const NewMessage *a, const NewMessage *b)
{
    Hash x = likeness(run, a), y = likeness(run, b);
    return memcmp(x.bytes, y.bytes, HASH_BYTES) == 0;
}

static bool is_prompt(const NewMessage *message, const char *prompt)
{
    if (message->role != ROLE_SYSTEM || !*prompt) return false;
    for (size_t i = 0; i < message->n_parts; i++) {
        const Part *part = message->parts[i];
        if (part->kind_case != PART__KIND_TEXT) return false;
        size_t size = strlen(part->text->text);
        if (strncmp(prompt, part->text->text, size) != 0) return false;
        prompt += size;
    }
    return !*prompt;
}

typedef struct History {
    NewMessage **messages;
    size_t count;
} History;

// Reads the history; returns false if it is too long to send.
static bool history_read(Run *run, ModelSession *session, History *out)
{
    size_t count, at = 0;
    Entry **history = model_history(&run->model, session->head, &count);
    Entry **entries = run_alloc(run, count * sizeof(Entry *));
    for (size_t i = 0; i < count; i++) {
        bool is_sent = !history[i]->deleted_at && compare_kind_is_listed(NULL, 0, history[i]->kind);
        if (is_sent) entries[at++] = history[i];
    }
    if (at > HISTORY_COUNT_MAX) return false;
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session->id;
    Pages pages = compare_read_pages(run, RUN_MESSAGES_FOR_SESSION, &request.base, at);
    RUN_CHECK(run, pages.count == at);
    *out = (History){run_alloc(run, at * sizeof(NewMessage *)), at};
    for (size_t i = 0; i < at; i++) {
        const Message *message = (const Message *)pages.records[i];
        entries[i]->is_verified = false;
        content_check(run, message, entries[i]);
        out->messages[i] = sent_again(run, message);
    }
    return true;
}

// The session's prompt as a message, of one part or of two.
static NewMessage *prompt_message(Run *run, const char *prompt)
{
    NewMessage *message = RUN_NEW(run, NewMessage);
    tine__v1__new_message__init(message);
    message->role = ROLE_SYSTEM;
    size_t size = strlen(prompt), half = run_below(run, size);
    while (((unsigned char)prompt[half] & 0xC0) == 0x80) // not within a character
        half--;
    message->n_parts = half > 0 ? 2 : 1;
    message->parts = run_alloc(run, 2 * sizeof(Part *));
    for (size_t i = 0; i < message->n_parts; i++) {
        Part *part = message->parts[i] = RUN_NEW(run, Part);
        tine__v1__part__init(part);
        part->kind_case = PART__KIND_TEXT;
        part->text = RUN_NEW(run, Text);
        tine__v1__text__init(part->text);
        const char *from = i == 0 ? prompt : prompt + half;
        size_t bytes = i == 0 && half > 0 ? half : strlen(from);
        part->text->text = run_alloc(run, bytes + 1);
        memcpy(part->text->text, from, bytes);
    }
    return message;
}

static MessageKind turn_kind(Run *run)
{
    return run_chance(run, 80) ? MESSAGE_KIND_CONVERSATION : MESSAGE_KIND_INJECTED;
}

// Another message in the place of one, one left out, or the end left out.
static void history_change(Run *run, AppendExchangeRequest *request)
{
    size_t index = run_below(run, request->n_messages);
    switch (run_below(run, 4)) {
    case 0: request->messages[index] = content_message(run, turn_kind(run)); break;
    case 1:
        request->n_messages--;
        for (size_t i = index; i < request->n_messages; i++)
            request->messages[i] = request->messages[i + 1];
        break;
    case 2: request->n_messages = index; break;
    default: { // little else
        NewMessage *message = RUN_NEW(run, NewMessage);
        *message = *request->messages[index];
        message->name = run_text(run, "renamed-%u", run->next_number++);
        request->messages[index] = message;
        break;
    }
    }
}

static void history_send(Run *run, AppendExchangeRequest *request, const ModelSession *session,
                         const History *history)
{
    size_t at = 0;
    request->replay = true;
    request->messages =
        run_alloc(run, (history->count + 2 + TAIL_COUNT_MAX) * sizeof(NewMessage *));
    const char *prompt = session->record->system_prompt;
    if (*prompt && run_chance(run, 40)) request->messages[at++] = prompt_message(run, prompt);
    for (size_t i = 0; i < history->count; i++)
        request->messages[at++] = history->messages[i];
    request->n_messages = at;
    if (at > 0 && run_chance(run, 30)) history_change(run, request);
    size_t tail = run_below(run, TAIL_COUNT_MAX + 1);
    if (request->n_messages == 0 && tail == 0) tail = 1;
    for (size_t i = 0; i < tail; i++)
        request->messages[request->n_messages++] = content_message(run, turn_kind(run));
}

// Says what of the request is in the history, or that it is another one.
static void history_expect(Run *run, Sending *sending, const History *history)
{
    const AppendExchangeRequest *request = &sending->request;
    NewMessage **sent = request->messages;
    size_t begin = is_prompt(sent[0], sending->pick.session->record->system_prompt);
    if (begin && history->count > 0 && is_like(run, sent[0], history->messages[0])) begin = 0;
    size_t left = request->n_messages - begin;
    size_t common = left < history->count ? left : history->count;
    sending->first = begin + common;
    for (size_t i = 0; i < common && !*sending->reason; i++) {
        if (!is_like(run, sent[begin + i], history->messages[i])) {
            sending->reason = "HISTORY_DIVERGED";
        }
    }
}

void operate_replay_history(Run *run)
{
    Sending sending;
    History history;
    SessionPick pick = pick_session(run);
    for (int i = 1; !pick.session || !history_read(run, pick.session, &history); i++) {
        if (i >= PICK_TRIES) return;
        pick = pick_session(run);
    }
    sending_begin(run, &sending, pick);
    history_send(run, &sending.request, pick.session, &history);
    history_expect(run, &sending, &history);
    sending_call(run, &sending);
    if (run_below(run, 40) == 0) {
        sending.request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
        sending.reason = "INVALID_ARGUMENT"; // it goes on where the history ends
    }
    sending_send(run, &sending);
}
