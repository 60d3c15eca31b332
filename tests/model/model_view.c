// The model: what follows from its sessions and entries.

#include <stdio.h>

#include "model.h"

static void plus(int64_t *sum, int64_t delta)
{
    if (!__builtin_add_overflow(*sum, delta, sum)) return;
    *sum = delta > 0 ? INT64_MAX : INT64_MIN;
}

void totals_plus(Totals *totals, const Totals *delta)
{
    plus(&totals->input_tokens, delta->input_tokens);
    plus(&totals->output_tokens, delta->output_tokens);
    plus(&totals->cache_read_tokens, delta->cache_read_tokens);
    plus(&totals->cache_write_tokens, delta->cache_write_tokens);
    plus(&totals->cost_nano_usd, delta->cost_nano_usd);
}

// The longest beginning of whole characters within a number of bytes.
static void cut(const char *text, size_t bytes_max, char *out)
{
    size_t size = strlen(text);
    if (size > bytes_max) {
        size = bytes_max;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
            size--;
    }
    memcpy(out, text, size);
    out[size] = '\0';
}

static bool is_turn(const Entry *entry, Role role)
{
    return entry->kind == MESSAGE_KIND_CONVERSATION && entry->role == role &&
           entry->deleted_at == 0;
}

void model_first_preview(const ModelSession *session, char out[300])
{
    out[0] = '\0';
    for (size_t i = 0; i < session->entry_count; i++) {
        const Entry *entry = session->entries[i];
        if (!is_turn(entry, ROLE_USER) || !entry->text) continue;
        cut(entry->text, 256, out);
        return;
    }
}

static void last_preview(const ModelSession *session, Role role, char out[200])
{
    out[0] = '\0';
    for (const Entry *entry = session->head; entry; entry = entry->parent) {
        if (entry->owner != session || !is_turn(entry, role) || !entry->text) continue;
        cut(entry->text, 160, out);
        return;
    }
}

const char *model_latest_user(const ModelSession *session)
{
    for (const Entry *entry = session->head; entry; entry = entry->parent) {
        if (entry->owner == session && is_turn(entry, ROLE_USER)) return entry->id;
    }
    return "";
}

int64_t model_last_active_at(const ModelSession *session)
{
    if (session->entry_count == 0) return session->record->created_at;
    int64_t greatest = session->entries[0]->created_at;
    for (size_t i = 1; i < session->entry_count; i++) {
        if (session->entries[i]->created_at > greatest) greatest = session->entries[i]->created_at;
    }
    return greatest;
}

SessionStatus model_status(const ModelSession *session, int64_t now_ms)
{
    const Session *record = session->record;
    bool is_over = record->status_until != 0 && record->status_until <= now_ms;
    return is_over ? SESSION_STATUS_IDLE : record->status;
}

static LastCall *last_call(const ModelSession *session, LastCall *out)
{
    if (session->call_count == 0) return NULL;
    const CallRecord *call = session->calls[session->call_count - 1];
    *out = (LastCall)TINE__V1__LAST_CALL__INIT;
    out->id = call->id;
    out->request_id = call->request_id;
    out->model = call->resolved ? call->resolved : call->requested;
    out->cost_nano_usd = call->usage ? call->usage->cost_nano_usd : 0;
    out->created_at = call->created_at;
    return out;
}

Session model_session_view(ModelSession *session, int64_t now_ms, bool is_brief, ModelTexts *texts)
{
    Session view = *session->record;
    if (is_brief) view.system_prompt = view.data_json = (char *)(uintptr_t) "";
    view.status = model_status(session, now_ms);
    if (view.status != session->record->status) view.status_until = 0;
    view.head_id = session->head ? session->head->id : (char *)(uintptr_t) "";
    view.next_sequence = session->entry_count;
    view.last_entry_id = session->entry_count ? session->entries[session->entry_count - 1]->id
                                              : (char *)(uintptr_t) "";
    view.last_event_sequence = session->last_event_sequence;
    view.last_active_at = model_last_active_at(session);
    texts->own_totals = (Totals)TOTALS__INIT;
    for (size_t i = 0; i < session->entry_count; i++) {
        const Entry *entry = session->entries[i];
        if (entry->deleted_at) continue;
        view.entry_count++;
        view.message_count += entry->kind == MESSAGE_KIND_CONVERSATION;
        if (entry->has_usage) totals_plus(&texts->own_totals, &entry->usage);
    }
    view.own_totals = &texts->own_totals;
    view.call_count = session->call_count;
    view.last_call = last_call(session, &texts->last_call);
    model_first_preview(session, texts->first);
    last_preview(session, ROLE_USER, texts->user);
    last_preview(session, ROLE_ASSISTANT, texts->agent);
    view.first_message_preview = texts->first;
    view.last_user_message = texts->user;
    view.last_agent_message = texts->agent;
    return view;
}

Entry *model_latest_marker(Entry *head)
{
    for (Entry *entry = head; entry; entry = entry->parent) {
        if (entry->kind == MESSAGE_KIND_COMPACTION && entry->deleted_at == 0) return entry;
    }
    return NULL;
}
