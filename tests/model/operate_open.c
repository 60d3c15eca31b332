// Operations on open entries: appending parts, replacing them, sealing.

#include <stdlib.h>

#include "operate.h"

static bool is_open(const Entry *entry)
{
    return entry->status == MESSAGE_STATUS_OPEN && !entry->deleted_at && !entry->is_purged;
}

// Mostly an open entry, if a session has one near a random place.
static EntryPick pick_open(Run *run, const char **out_reason)
{
    SessionPick pick = pick_session(run);
    ModelSession *session = pick.session;
    if (!session || session->entry_count == 0 || run_chance(run, 10)) {
        EntryPick victim = pick_victim(run, out_reason);
        if (!**out_reason && !is_open(victim.entry)) *out_reason = "MESSAGE_SEALED";
        return victim;
    }
    size_t start = run_below(run, session->entry_count);
    Entry *entry = session->entries[start];
    for (size_t i = 0; i < session->entry_count && !is_open(entry); i++)
        entry = session->entries[(start + i) % session->entry_count];
    *out_reason = pick_refusal(&pick);
    if (!**out_reason && !is_open(entry)) *out_reason = "MESSAGE_SEALED";
    return (EntryPick){entry->id, entry, ""};
}

// The parts with `part` behind them, or in the place of the one with its id.
static void parts_take(Run *run, Message *message, Part *part, bool *out_replaced)
{
    Part **parts = run_alloc(run, (message->n_parts + 1) * sizeof(Part *));
    for (size_t i = 0; i < message->n_parts; i++)
        parts[i] = message->parts[i];
    size_t at = 0;
    while (at < message->n_parts && strcmp(parts[at]->id, part->id) != 0)
        at++;
    *out_replaced = at < message->n_parts;
    parts[at] = part;
    message->parts = parts;
    if (!*out_replaced) message->n_parts++;
}

static void note_text(Entry *entry, const Message *message)
{
    free(entry->text);
    entry->text = content_texts(message->parts, message->n_parts);
    entry->has_parts = message->n_parts > 0;
}

void operate_append_part(Run *run)
{
    AppendPartRequest request = APPEND_PART_REQUEST__INIT;
    const char *reason;
    EntryPick victim = pick_open(run, &reason);
    Message *message = *reason ? NULL : operate_read_entry(run, victim.entry);
    Part *part = content_part(run);
    if (message && message->n_parts > 0 && run_chance(run, 40)) {
        part->id = run_text(run, "%s", message->parts[run_below(run, message->n_parts)]->id);
    }
    request.message_id = text_of(victim.id);
    request.part = part;
    AppendPartResponse *response = RUN_CALL(run, APPEND_PART, AppendPart, &request, reason);
    if (!response) return;
    Receipt receipt = *response->receipt;
    RUN_CHECK(run, receipt.n_part_ids == 1);
    const char *id = receipt.part_ids[0];
    if (*part->id) {
        RUN_CHECK(run, strcmp(part->id, id) == 0);
    } else {
        run_new_id(run, id);
    }
    part->id = text_of(id);
    receipt.n_part_ids = 0;
    operate_check_receipt(run, &receipt, victim.entry);
    bool is_replaced;
    Message whole = *message;
    parts_take(run, &whole, part, &is_replaced);
    note_text(victim.entry, &whole);
    ExpectedEvent *event =
        operate_changed(run, victim.entry, &whole, is_replaced ? "part.replaced" : "part.appended");
    snprintf(event->record_id, sizeof(event->record_id), "%s", id);
}

static SealMessageRequest random_seal(Run *run)
{
    SealMessageRequest request = SEAL_MESSAGE_REQUEST__INIT;
    static const MessageStatus ENDS[] = {MESSAGE_STATUS_UNSPECIFIED, MESSAGE_STATUS_COMPLETE,
                                         MESSAGE_STATUS_INTERRUPTED, MESSAGE_STATUS_FAILED};
    request.status = ENDS[run_below(run, 4)];
    if (run_chance(run, 30)) request.completed_at = run->now_ms + 5;
    if (run_chance(run, 30)) request.duration_ms = 1 + (int64_t)run_below(run, 9000);
    if (run_chance(run, 50)) request.usage = content_usage(run);
    if (run_chance(run, 50)) request.finish_reason = text_of("length");
    if (run_chance(run, 30)) {
        request.error = RUN_NEW(run, ErrorInfo);
        tine__v1__error__init(request.error);
        if (run_chance(run, 50)) request.error->code = text_of("overloaded");
        if (run_chance(run, 50)) request.error->message = content_text(run);
    }
    request.propagate_usage = run_chance(run, 40);
    return request;
}

static Message sealed(const Run *run, const Message *message, const SealMessageRequest *request)
{
    Message whole = *message;
    whole.status = request->status ? request->status : MESSAGE_STATUS_COMPLETE;
    whole.completed_at = request->completed_at ? request->completed_at : run->now_ms;
    if (request->duration_ms) whole.duration_ms = request->duration_ms;
    if (request->usage) whole.usage = request->usage;
    if (*request->finish_reason) whole.finish_reason = request->finish_reason;
    if (request->error) whole.error = request->error;
    return whole;
}

static Totals usage_totals(const Usage *usage)
{
    Totals totals = TOTALS__INIT;
    totals.input_tokens = usage->input_tokens;
    totals.output_tokens = usage->output_tokens;
    totals.cache_read_tokens = usage->cache_read_tokens;
    totals.cache_write_tokens = usage->cache_write_tokens;
    totals.cost_nano_usd = usage->cost_nano_usd;
    return totals;
}

void operate_seal_message(Run *run)
{
    const char *reason;
    EntryPick victim = pick_open(run, &reason);
    Entry *entry = victim.entry;
    SealMessageRequest request = random_seal(run);
    request.message_id = text_of(victim.id);
    if (run_below(run, 20) == 0) {
        request.status = MESSAGE_STATUS_OPEN;
        reason = "INVALID_ARGUMENT";
    }
    Message *message = *reason ? NULL : operate_read_entry(run, entry);
    SealMessageResponse *response = RUN_CALL(run, SEAL_MESSAGE, SealMessage, &request, reason);
    if (!response) return;
    Message whole = sealed(run, message, &request);
    entry->status = whole.status;
    TotalsUpdate **updates = NULL;
    size_t update_count = 0;
    if (request.usage) {
        Totals now = usage_totals(request.usage), delta = now;
        delta.input_tokens -= entry->usage.input_tokens;
        delta.output_tokens -= entry->usage.output_tokens;
        delta.cache_read_tokens -= entry->usage.cache_read_tokens;
        delta.cache_write_tokens -= entry->usage.cache_write_tokens;
        delta.cost_nano_usd -= entry->usage.cost_nano_usd;
        entry->has_usage = true;
        entry->usage = now;
        if (request.propagate_usage) {
            updates = operate_propagate(run, entry->owner, &delta, &update_count);
        }
    }
    Receipt receipt = *response->receipt;
    RUN_CHECK(run, receipt.n_totals == update_count);
    receipt.n_totals = 0;
    operate_check_receipt(run, &receipt, entry);
    ExpectedEvent *event = operate_changed(run, entry, &whole, "message.sealed");
    operate_event_totals(event, updates, update_count);
}
