// The operations: each picks its subjects, says how the call must end, makes it, and does the same
// to the model.

#pragma once

#include "content.h"

// A session to name in a call. `reason` says why the call must fail, "" if it need not.
typedef struct SessionPick {
    const char *id;
    ModelSession *session;
    const char *reason;
} SessionPick;

typedef struct EntryPick {
    const char *id;
    Entry *entry;
    const char *reason;
} EntryPick;

SessionPick pick_session(Run *run);
ModelSession *pick_live(Run *run); // NULL: there is none

// The reason that a write to the picked session must fail with, "" if none.
const char *pick_refusal(const SessionPick *pick);

// An entry that is likely in the tree of `session` (NULL is allowed), or not.
EntryPick pick_entry(Run *run, ModelSession *session);

// Random expected_head_id: absent, right or stale. Adds to `*reason` what follows from it.
bool pick_expected_head(Run *run, const SessionPick *pick, char **out_id, const char **reason);

// What a session told of itself when it was created or forked.
ModelSession *operate_session_created(Run *run, const Session *told, const NewSession *wanted,
                                      ModelSession *parent, Entry *head, bool is_fork);

void operate_create_session(Run *run);
void operate_fork_session(Run *run);
void operate_update_session(Run *run);
void operate_rename_session(Run *run);
void operate_soft_delete(Run *run);
void operate_restore(Run *run);
void operate_purge_session(Run *run);
void operate_rewind(Run *run);
void operate_update_totals(Run *run);
void operate_propagate_totals(Run *run);

void operate_append(Run *run);

// Appends small entries to a session, if it takes any and the ring of events has room for them.
void operate_grow(Run *run, ModelSession *session, size_t count);
void operate_add_marker(Run *run);
void operate_delete_message(Run *run);
void operate_purge_message(Run *run);
void operate_get_message(Run *run);

// Several messages at once, with the call that produced them; and a whole history sent again.
void operate_exchange(Run *run);
void operate_replay_history(Run *run);

// What appending entries has in common, one or several.
MessageKind operate_random_kind(Run *run);
External *operate_random_external(Run *run);

// A marker, and where it cuts off.
typedef struct Cut {
    Marker *marker;
    EntryPick at;
    const char *malformed; // the reason, or ""
} Cut;

Cut operate_random_cut(Run *run, ModelSession *session, bool is_required);

// What an unmalformed cut-off is refused with in the history up to `head`; "" if it is not.
const char *operate_cut_refusal(const Cut *cut, const Entry *head);

// Notes in a marker's entry what it cuts off.
void operate_entry_cut(Entry *entry, const Cut *cut);

// Purged entries let go of their external ids, deleted ones do not. NULL: nobody holds it.
Entry *operate_external_holder(const ModelSession *session, const External *external);

// Adds the entry that the store says it appended to the model, whose head is then the entry.
Entry *operate_entry_appended(Run *run, ModelSession *session, const NewMessage *sent,
                              const Receipt *receipt, Entry *parent);
void operate_append_event(Run *run, ModelSession *session, const Entry *entry,
                          TotalsUpdate **updates, size_t count);

void operate_append_part(Run *run);
void operate_seal_message(Run *run);

// Keeps bytes beside an entry, in the place of those that were there.
void operate_put_original(Run *run);
ProtobufCBinaryData operate_random_original(Run *run);
void operate_original_note(Entry *entry, ProtobufCBinaryData content);

// An entry to change: anyone's. `*out_reason`: why its session refuses that, or why there is none.
EntryPick pick_victim(Run *run, const char **out_reason);

// The entry as it reads now, to say from it how it must read afterwards.
Message *operate_read_entry(Run *run, Entry *entry);

// Notes that the entry reads as `now` from here on, and the event of it.
ExpectedEvent *operate_changed(Run *run, Entry *entry, const Message *now, const char *event_type);

// A receipt of an entry that was there before, without ids of parts and totals.
void operate_check_receipt(Run *run, const Receipt *actual, const Entry *entry);

void operate_remember(Run *run);
void operate_forget(Run *run);
void operate_record_call(Run *run);

// What recording a call has in common, alone or with its messages.
void operate_random_call(Run *run, CallRecord *call);
NewCall operate_new_call(const CallRecord *call);
bool operate_call_is_taken(const Model *model, const External *external);

// Adds the call to the model, and its event.
void operate_call_recorded(Run *run, ModelSession *session, const CallRecord *call,
                           TotalsUpdate **updates, size_t count);
void operate_delete_call(Run *run);
void operate_replace_todos(Run *run);
void operate_publish_event(Run *run);
void operate_read_in_vain(Run *run);
void operate_list_events_in_vain(Run *run);
void operate_move_clock(Run *run);

// Closes the store and opens it again; a purge that was pending goes on by itself.
void operate_reopen(Run *run);

// Goes on with a listing that was begun some writes ago.
void operate_pages(Run *run);

// Adds a delta up the chain of parents and lists the new totals, which the event carries too.
TotalsUpdate **operate_propagate(Run *run, ModelSession *session, const Totals *delta,
                                 size_t *out_count);
void operate_event_totals(ExpectedEvent *event, TotalsUpdate **updates, size_t count);
