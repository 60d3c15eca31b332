// Picking what an operation is about.

#include "operate.h"

ModelSession *pick_live(Run *run)
{
    size_t live = 0;
    for (size_t i = 0; i < run->model.count; i++)
        live += !run->model.sessions[i]->is_tombstone;
    if (live == 0) return NULL;
    size_t index = run_below(run, live);
    for (size_t i = 0;; i++) {
        if (run->model.sessions[i]->is_tombstone) continue;
        if (index-- == 0) return run->model.sessions[i];
    }
}

static ModelSession *pick_favourite(Run *run)
{
    ModelSession **favourite =
        &run->favourites[run_below(run, sizeof(run->favourites) / sizeof(*run->favourites))];
    if (!*favourite || run_below(run, 300) == 0) *favourite = pick_live(run);
    return *favourite;
}

static SessionPick pick_wrong_session(Run *run)
{
    SessionPick pick = {.id = "01HF7YAT000000000000000000", .reason = "SESSION_NOT_FOUND"};
    size_t dead = run->dead_session_count;
    switch (run_below(run, 5)) {
    case 0:
        if (dead > DEAD_ID_COUNT) dead = DEAD_ID_COUNT;
        if (dead > 0) pick.id = run_text(run, "%s", run->dead_sessions[run_below(run, dead)]);
        break;
    case 1: { // a message's id
        ModelSession *live = pick_live(run);
        if (live && live->entry_count) pick.id = live->entries[0]->id;
        break;
    }
    case 2:
        pick.id = "not-an-id";
        pick.reason = "INVALID_ARGUMENT";
        break;
    case 3:
        pick.id = "";
        pick.reason = "INVALID_ARGUMENT";
        break;
    default: break;
    }
    return pick;
}

SessionPick pick_session(Run *run)
{
    if (run_below(run, 40) == 0) return pick_wrong_session(run);
    ModelSession *session = run_chance(run, 80) ? pick_favourite(run) : pick_live(run);
    if (!session) return pick_wrong_session(run);
    return (SessionPick){session->id, session, ""};
}

const char *pick_refusal(const SessionPick *pick)
{
    if (*pick->reason) return pick->reason;
    if (pick->session->record->deleted_at) return "SESSION_DELETED";
    return pick->session->record->archived_at ? "SESSION_ARCHIVED" : "";
}

static EntryPick pick_wrong_entry(Run *run)
{
    EntryPick pick = {.id = "01HF7YAT000000000000000000", .reason = "MESSAGE_NOT_FOUND"};
    size_t dead = run->dead_message_count;
    switch (run_below(run, 4)) {
    case 0:
        if (dead > DEAD_ID_COUNT) dead = DEAD_ID_COUNT;
        if (dead == 0) break;
        run_settle(run); // a tombstone's messages go in the background
        pick.id = run_text(run, "%s", run->dead_messages[run_below(run, dead)]);
        break;
    case 1: {
        ModelSession *live = pick_live(run);
        if (live) pick.id = live->id;
        break;
    }
    case 2:
        pick.id = "01hf7yat000000000000000000"; // lower case
        pick.reason = "INVALID_ARGUMENT";
        break;
    default: break;
    }
    return pick;
}

// A few steps back from the head.
static Entry *pick_from_history(Run *run, ModelSession *session)
{
    Entry *entry = session->head;
    uint64_t steps = run_chance(run, 98) ? run_below(run, 4) : run_below(run, 200);
    while (entry && steps-- > 0 && entry->parent)
        entry = entry->parent;
    return entry;
}

EntryPick pick_entry(Run *run, ModelSession *session)
{
    uint64_t die = run_below(run, 100);
    Entry *entry = NULL;
    if (die < 70 && session) {
        entry = pick_from_history(run, session);
    } else if (die < 85 && session && session->entry_count) { // on a branch that was left, perhaps
        size_t count = session->entry_count;
        size_t back = run_below(run, count > 12 && run_chance(run, 95) ? 12 : count);
        entry = session->entries[count - 1 - back];
    } else if (die < 95 &&
               run->model.count) { // anyone's, a tombstone's too; at times an ancestor's
        ModelSession *other = run->model.sessions[run_below(run, run->model.count)];
        if (session && session->read_count && die < 90) {
            other = session->reads[run_below(run, session->read_count)].session;
        }
        if (other->entry_count) entry = other->entries[run_below(run, other->entry_count)];
    }
    if (!entry) return pick_wrong_entry(run);
    return (EntryPick){entry->id, entry, ""};
}

bool pick_expected_head(Run *run, const SessionPick *pick, char **out_id, const char **reason)
{
    if (!pick->session || run_chance(run, 80)) return false;
    const char *head = pick->session->head ? pick->session->head->id : "";
    *out_id = text_of(head);
    if (run_chance(run, 70)) return true;
    Entry *entry = pick_from_history(run, pick->session);
    bool is_stale = entry && entry != pick->session->head;
    *out_id = text_of(is_stale ? entry->id : (*head ? "" : "01HF7YAT000000000000000000"));
    if (!**reason) *reason = "HEAD_MOVED";
    return true;
}
