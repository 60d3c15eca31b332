// Sets of sessions, for export.

#pragma once

#include "find.h"

enum { SESSION_SET_MAX = 10 * 1000 * 1000 };

// IDs of sessions, each once.
typedef struct SessionSet {
    SessionName *names; // owned
    size_t count, capacity;
} SessionSet;

void session_set_free(SessionSet *set);
MUST_USE int session_set_add(SessionSet *set, const char *id);

// Sorts by ID, so parents come before children, and removes duplicates.
void session_set_sort(SessionSet *set);

// Adds all sessions that match the filter. Its limit and cursor are set here.
MUST_USE int session_set_list(Cli *cli, SessionSet *set, ListSessionsRequest filter);

// Adds the ancestors of all sessions in the set; adds their descendants.
MUST_USE int session_set_add_ancestors(Cli *cli, SessionSet *set);
MUST_USE int session_set_add_children(Cli *cli, SessionSet *set);
