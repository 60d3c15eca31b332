// The model: what a store should hold, kept in the plainest way.
//
// A session is an array of entries, each with a pointer to the entry before it; a history is found
// by following those pointers from the head, totals by adding up, a listing by filtering and
// sorting. Nothing here knows of origins at ids, segments, indexes or chunks.

#pragma once

#include "base/hash.h"
#include "names.h"
#include "text/ulid.h"

enum { ID_BYTES = ULID_TEXT_BYTES + 1 };

typedef struct ModelSession ModelSession;
typedef struct Entry Entry;

struct Entry {
    char id[ID_BYTES];
    ModelSession *owner;
    Entry *parent; // the entry before it in its history; NULL at the beginning
    uint64_t sequence;
    MessageKind kind;
    Role role;
    MessageStatus status;
    int64_t created_at, deleted_at;
    bool is_purged;
    bool has_usage;
    Totals usage;
    char *text; // of its text parts (content_texts); owned, NULL if there is none
    bool has_parts;
    const char *subtype; // of the generator's tables, like the strings below
    char target_id[ID_BYTES];
    const char *external_source; // NULL: no external id
    unsigned external_number;
    const char *model_provider; // NULL: no model
    const char *model_name;
    bool is_marker_open;    // a marker that names no cut-off: nothing before it is kept
    Entry *cut_off;         // NULL with keep_all
    Hash content;           // of the whole Message as it must read
    Hash content_bare;      // … when the call that produced it is gone
    char call_id[ID_BYTES]; // of that call in the session's ledger; "": none
    bool has_original;
    Hash original;    // of its bytes
    bool is_verified; // since its content last changed
};

// "Session `reader` has an entry, or had a head, that follows an entry of `session` up to `last`."
typedef struct ModelRead {
    ModelSession *session;
    const Entry *last; // the newest such entry
} ModelRead;

struct ModelSession {
    char id[ID_BYTES];
    Session *record; // its settings, updated_at, status and rolled-up totals; owned
    ModelSession *parent;
    bool is_tombstone; // purged, but others read it
    Entry *head;
    Entry **entries; // the log
    size_t entry_count, entry_capacity;
    ModelRead *reads;
    size_t read_count;
    Memory **memories; // owned; forgotten ones too
    size_t memory_count;
    CallRecord **calls; // owned; in the order of their ids
    size_t call_count;
    Todos *todos; // owned; NULL: none
    uint64_t last_event_sequence;
    bool is_touched;          // since the last comparison
    unsigned mark;            // of the search that last came by …
    const char *mark_cut_off; // … with this cut-off
};

typedef struct Model {
    ModelSession **sessions; // by id; tombstones too
    size_t count, capacity;
    unsigned mark;
    Entry **walk; // of the last model_history
    size_t walk_capacity;
} Model;

void model_free(Model *model);

// Takes the record.
ModelSession *model_session_add(Model *model, Session *record, ModelSession *parent);

// By id, tombstones left out; NULL if there is none.
ModelSession *model_session(const Model *model, const char *id);

// Adds an entry behind `parent` and makes it the head.
Entry *model_entry_add(ModelSession *session, const char *id, Entry *parent);

// Notes that the session's entries follow `entry`, wherever that is. NULL is allowed.
void model_read_add(ModelSession *session, const Entry *entry);

// The entries from the beginning through `head`, deleted ones too. Valid until the next call.
Entry **model_history(Model *model, Entry *head, size_t *out_count);

bool model_history_holds(const Entry *head, const Entry *wanted);

// Whether the entry is in the session's tree, as ruling 3 says it.
bool model_in_tree(Model *model, ModelSession *session, const Entry *entry);

// How many sessions own entries of the history up to `head`.
size_t model_history_owners(Model *model, const Entry *head);

// Whether a session that was not purged, or a tombstone, reads this one.
bool model_is_read(const Model *model, const ModelSession *session);

// Purges: the session and all tombstones that nobody reads any more are gone, or it is a tombstone.
// Returns how many are gone.
size_t model_purge(Model *model, ModelSession *session);

// The whole Session as a read at `now_ms` must show it. Borrows; `texts` gives room for previews.
typedef struct ModelTexts {
    char first[300], user[200], agent[200];
    Totals own_totals;
    LastCall last_call;
} ModelTexts;

Session model_session_view(ModelSession *session, int64_t now_ms, bool is_brief, ModelTexts *texts);

// The greatest time of its entries, deleted ones too; its own if it has none.
int64_t model_last_active_at(const ModelSession *session);
void model_first_preview(const ModelSession *session, char out[300]);
SessionStatus model_status(const ModelSession *session, int64_t now_ms);

// The newest user turn of the current history that the session owns; "" if there is none.
const char *model_latest_user(const ModelSession *session);

// The newest marker of the history up to `head` that is not deleted; NULL if there is none.
Entry *model_latest_marker(Entry *head);

void totals_plus(Totals *totals, const Totals *delta);

// Replaces a string of a record.
void record_set(char **field, const char *value);
