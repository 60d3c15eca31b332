// Exports: sessions as lines of JSON that `tine import` takes back, or as Markdown for people.
//
// The first line is {"tine_export": 1}. Then, session by session, parents before children:
//
//     {"session": {…}}   as GetSession has it
//     {"call": {…}}      each call of its ledger
//     {"entry": {…}}     each entry of its log, all branches, in order; deleted ones too
//     {"original": {…}}  the bytes that an entry was imported from, if they were kept
//     {"memory": {…}}    each fact that is not forgotten
//     {"todos": {…}}     its task list, if it has one
//
// A session whose parent was purged is led by the entries that it inherited from there.

#pragma once

#include "cli.h"

enum { EXPORT_FORMAT = 1, SESSION_SET_MAX = 10 * 1000 * 1000 };

// Which sessions: their ids, each once.
typedef struct SessionSet {
    SessionName *names; // owned
    size_t count, capacity;
} SessionSet;

void session_set_free(SessionSet *set);
MUST_USE int session_set_add(SessionSet *set, const char *id);

// Sorts by id, so that parents come before children, and drops repeats.
void session_set_sort(SessionSet *set);

// Adds all sessions that a listing with these filters has. Its limit and cursor are set here.
MUST_USE int session_set_list(Cli *cli, SessionSet *set, ListSessionsRequest filter);

// Adds the ancestors of all that are in it; and those who descend from them.
MUST_USE int session_set_add_ancestors(Cli *cli, SessionSet *set);
MUST_USE int session_set_add_children(Cli *cli, SessionSet *set);

// Writes one session with all that belongs to it.
MUST_USE int export_session(Cli *cli, FILE *out, const char *id);
MUST_USE int export_session_markdown(Cli *cli, FILE *out, const char *id);
