// Keeps sets of sessions.

#include "session_set.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_SESSIONS = 1000 };

void session_set_free(SessionSet *set)
{
    free(set->names);
    *set = (SessionSet){0};
}

int session_set_add(SessionSet *set, const char *id)
{
    if (set->count == SESSION_SET_MAX) {
        return cli_say(EXIT_FAILED, "more than %d sessions", SESSION_SET_MAX);
    }
    if (set->count == set->capacity) {
        size_t capacity = set->capacity > 0 ? 2 * set->capacity : 64;
        SessionName *names = realloc(set->names, capacity * sizeof(*names));
        if (!names) return cli_say(EXIT_FAILED, "out of memory");
        set->names = names;
        set->capacity = capacity;
    }
    snprintf(set->names[set->count++].id, ID_BYTES, "%s", id);
    return EXIT_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const SessionName *)a)->id, ((const SessionName *)b)->id);
}

void session_set_sort(SessionSet *set)
{
    size_t kept = 0;
    if (set->count == 0) return;
    qsort(set->names, set->count, sizeof(*set->names), compare);
    for (size_t i = 0; i < set->count; i++) {
        if (kept > 0 && compare(&set->names[kept - 1], &set->names[i]) == 0) continue;
        set->names[kept++] = set->names[i];
    }
    set->count = kept;
}

int session_set_list(Cli *cli, SessionSet *set, ListSessionsRequest filter)
{
    CLEANUP(message_freep) ListSessionsResponse *reply = NULL;
    filter.limit = PAGE_SESSIONS;
    filter.deleted = DELETED_FILTER_INCLUDE;
    do {
        ListSessionsResponse *next = NULL;
        if (tine_list_sessions(cli->tine, &cli->call, &filter, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_sessions; i++) {
            int code = session_set_add(set, reply->sessions[i]->id);
            if (code) return code;
        }
        filter.cursor = reply->next_cursor;
    } while (*filter.cursor);
    return EXIT_OK;
}

static bool is_in(const SessionSet *set, size_t sorted_count, const char *id)
{
    SessionName name;
    snprintf(name.id, sizeof(name.id), "%s", id);
    return bsearch(&name, set->names, sorted_count, sizeof(name), compare) != NULL;
}

// Adds parents until one is in the set already. `out_parent` is "" at the end of the line.
static int parent_of(Cli *cli, const char *id, char out_parent[ID_BYTES])
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)id;
    if (tine_get_session(cli->tine, &cli->call, &request, &reply)) {
        out_parent[0] = '\0';
        // For a moment, children still name a parent that is being purged. A damaged session has
        // no parent that can be known; its export tells.
        bool is_end = cli->status.code == STATUS_NOT_FOUND || cli->status.code == STATUS_DATA_LOSS;
        return is_end ? EXIT_OK : cli_fail(cli, &cli->status);
    }
    snprintf(out_parent, ID_BYTES, "%s", reply->session->parent_id);
    return EXIT_OK;
}

static bool exists(Cli *cli, const char *id)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)id;
    return tine_get_session(cli->tine, &cli->call, &request, &reply) == 0;
}

int session_set_add_ancestors(Cli *cli, SessionSet *set)
{
    session_set_sort(set);
    size_t sorted_count = set->count;
    for (size_t i = 0; i < set->count; i++) {
        char id[ID_BYTES];
        int code = parent_of(cli, set->names[i].id, id);
        if (code) return code;
        if (!*id || is_in(set, sorted_count, id) || !exists(cli, id)) continue;
        code = session_set_add(set, id); // its own parent is added when `i` reaches it
        if (code) return code;
    }
    session_set_sort(set);
    return EXIT_OK;
}

int session_set_add_children(Cli *cli, SessionSet *set)
{
    for (size_t i = 0; i < set->count; i++) {
        ListSessionsRequest filter = LIST_SESSIONS_REQUEST__INIT;
        char id[ID_BYTES];
        snprintf(id, sizeof(id), "%s", set->names[i].id); // the array may move when it grows
        filter.parent_id = id;
        int code = session_set_list(cli, set, filter);
        if (code) return code;
    }
    session_set_sort(set);
    return EXIT_OK;
}
