// Purging sessions.

#include "operate.h"

enum { LIVE_WANTED = 110, GROWN_ENTRIES = 300 };

static void note_dead(Run *run, const ModelSession *session)
{
    memcpy(run->dead_sessions[run->dead_session_count++ % DEAD_ID_COUNT], session->id, ID_BYTES);
    for (size_t i = 0; i < sizeof(run->favourites) / sizeof(*run->favourites); i++) {
        if (run->favourites[i] == session) run->favourites[i] = NULL;
    }
}

// The ids of messages are dead when their session, or the tombstone it became, is gone.
static void note_dead_messages(Run *run, ModelSession *session, char ids[3][ID_BYTES])
{
    for (size_t i = 0; i < 3; i++) {
        ids[i][0] = '\0';
        if (session->entry_count == 0) continue;
        Entry *entry = session->entries[run_below(run, session->entry_count)];
        memcpy(ids[i], entry->id, ID_BYTES);
    }
}

static bool is_in_model(const Run *run, const ModelSession *session)
{
    for (size_t i = 0; i < run->model.count; i++) {
        if (run->model.sessions[i] == session) return true;
    }
    return false;
}

static void purge(Run *run, const SessionPick *pick)
{
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = text_of(pick->id);
    request.keep_for_forks = run_chance(run, 40);
    bool is_read = pick->session && model_is_read(&run->model, pick->session);
    if (run->is_releasing) run_settle(run); // such a tombstone may read this one until then
    const char *reason = pick->reason;
    if (!*reason && is_read && !request.keep_for_forks) reason = "FORKS_EXIST";
    PurgeSessionResponse *response = RUN_CALL(run, PURGE_SESSION, PurgeSession, &request, reason);
    if (!response) return;
    RUN_CHECK(run, strcmp(response->session_id, pick->id) == 0);
    RUN_CHECK(run, response->kept_for_forks == is_read);
    run_event(run, pick->session, pick->id, "session.purged");

    char ids[3][ID_BYTES];
    note_dead(run, pick->session);
    note_dead_messages(run, pick->session, ids);
    if (run->pages.session == pick->session) run->pages.session = NULL;
    bool has_produced = pick->session->call_count > 0;
    for (size_t i = 0; i < pick->session->entry_count; i++) {
        Entry *entry = pick->session->entries[i];
        if (*entry->call_id) content_forget_call(entry);
    }
    run->is_releasing |= model_purge(&run->model, pick->session) > 1;
    for (size_t i = 0; i < 3 && !is_in_model(run, pick->session); i++) {
        if (!*ids[i]) continue;
        memcpy(run->dead_messages[run->dead_message_count++ % DEAD_ID_COUNT], ids[i], ID_BYTES);
    }
    run->is_purging = true;
    // A tombstone's calls go in the background; until then its entries name them.
    if (has_produced && is_read) run_settle(run);
}

static size_t reader_count(const Run *run, const ModelSession *session)
{
    size_t count = 0;
    for (size_t i = 0; i < run->model.count; i++) {
        const ModelSession *reader = run->model.sessions[i];
        for (size_t j = 0; j < reader->read_count; j++)
            count += reader->reads[j].session == session;
    }
    return count;
}

// Purges a reader and right after it what it alone read: purged, it reads no more, though its rows
// go in the background. The longest such reader: it takes several slices.
static void purge_reader(Run *run)
{
    ModelSession *longest = NULL, *read = NULL;
    for (size_t i = 0; i < run->model.count; i++) {
        ModelSession *session = run->model.sessions[i];
        bool is_longer = !longest || session->entry_count > longest->entry_count;
        if (session->is_tombstone || !is_longer || reader_count(run, session) > 0) continue;
        for (size_t j = 0; j < session->read_count; j++) {
            ModelSession *other = session->reads[j].session;
            if (other->is_tombstone || reader_count(run, other) != 1) continue;
            longest = session;
            read = other;
        }
    }
    if (!longest) return;
    if (run_below(run, 8) == 0) operate_grow(run, longest, GROWN_ENTRIES);
    purge(run, &(SessionPick){longest->id, longest, ""});
    purge(run, &(SessionPick){read->id, read, ""});
}

void operate_purge_session(Run *run)
{
    if (run->model.count < LIVE_WANTED && run_chance(run, 70)) return;
    if (run_below(run, 12) == 0) {
        purge_reader(run);
    } else {
        SessionPick pick = pick_session(run);
        if (pick.session && run_chance(run, 90)) { // not a favourite: those grow long
            ModelSession *live = pick_live(run);
            pick = (SessionPick){live->id, live, ""};
        }
        purge(run, &pick);
    }
    if (run_chance(run, 50)) run_settle(run);
}
