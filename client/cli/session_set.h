// Sets of sessions, for export.

#pragma once

#include "find.h"

enum { SESSION_SET_MAX = 10 * 1000 * 1000 };

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
