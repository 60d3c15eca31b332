// The path is walked from the fork point up and written from its beginning on.
//
// pi copies the labels of what a fork inherits when it makes the fork, wherever they stand. Here
// they are looked for in the ancestors' logs: an ancestor's labels count if they are older than the
// session that was forked from it. Those that are on the path are written there; the others follow
// the path as a chain, as pi writes them.

#include "importers/pi/pi_inherited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_line.h"

enum { PATH_COUNT_MAX = 1000 * 1000, ANCESTORS_MAX = 100 * 1000 };

typedef struct Inherited {
    char id[STORE_ID_BYTES];
    bool is_labelled;              // by an entry on the path, at some time
    char label_id[STORE_ID_BYTES]; // the latest of its labels; "": none
    Message *label;                // owned; NULL: it is on the path
} Inherited;

typedef struct Path {
    Inherited *list;    // from its end to its beginning; owned
    Inherited **sorted; // by ID; owned
    size_t count, capacity;
    char owner[STORE_ID_BYTES]; // of the entry that was written last
} Path;

static void path_free(Path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        Message *label = path->list[i].label;
        if (label) protobuf_c_message_free_unpacked(&label->base, NULL);
    }
    free(path->list);
    free(path->sorted);
}

static int path_add(const PiExport *export, Path *path, const char *id)
{
    if (path->count == PATH_COUNT_MAX) {
        return pi_export_fail(export, STATUS_OUT_OF_RANGE, "the fork inherits more than %d entries",
                              PATH_COUNT_MAX);
    }
    if (path->count == path->capacity) {
        size_t capacity = path->capacity > 0 ? path->capacity * 2 : 256;
        Inherited *list = realloc(path->list, capacity * sizeof(*list));
        if (!list) return pi_export_fail_memory(export);
        path->list = list;
        path->capacity = capacity;
    }
    Inherited *entry = &path->list[path->count++];
    *entry = (Inherited){.label = NULL};
    snprintf(entry->id, sizeof(entry->id), "%s", id);
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp((*(Inherited *const *)a)->id, (*(Inherited *const *)b)->id);
}

static int path_find(const PiExport *export, Path *path)
{
    char at[STORE_ID_BYTES];
    int code = STATUS_OK;
    snprintf(at, sizeof(at), "%s", export->session->fork_message_id);
    while (*at && !code) {
        CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
        if (pi_export_get(export, at, &reply)) return pi_export_fail_call(export);
        code = path_add(export, path, at);
        snprintf(at, sizeof(at), "%s", reply->message->parent_id);
    }
    if (code || path->count == 0) return code;
    path->sorted = malloc(path->count * sizeof(*path->sorted));
    if (!path->sorted) return pi_export_fail_memory(export);
    for (size_t i = 0; i < path->count; i++)
        path->sorted[i] = &path->list[i];
    qsort(path->sorted, path->count, sizeof(*path->sorted), compare);
    return STATUS_OK;
}

static Inherited *path_entry(const Path *path, const char *id)
{
    Inherited wanted, *key = &wanted;
    snprintf(wanted.id, sizeof(wanted.id), "%s", id);
    Inherited **found = bsearch(&key, path->sorted, path->count, sizeof(*path->sorted), compare);
    return found ? *found : NULL;
}

// Notes a label of an inherited entry. Takes `*label` if it will be written behind the path.
static void note_label(const Path *path, Message **label)
{
    Inherited *entry = path_entry(path, (*label)->target_id);
    if (!entry) return;
    bool is_on_path = path_entry(path, (*label)->id) != NULL;
    entry->is_labelled |= is_on_path;
    if (strcmp((*label)->id, entry->label_id) < 0) return;
    if (entry->label) protobuf_c_message_free_unpacked(&entry->label->base, NULL);
    snprintf(entry->label_id, sizeof(entry->label_id), "%s", (*label)->id);
    entry->label = is_on_path ? NULL : *label;
    if (!is_on_path) *label = NULL;
}

// Notes the labels in the log of an ancestor that are older than `before`, the session that was
// forked from it.
static int find_labels(const PiExport *export, const Path *path, char *ancestor, const char *before)
{
    MessageKind kind = MESSAGE_KIND_LABEL;
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *reply = NULL;
    request.session_id = ancestor;
    request.kinds = &kind;
    request.n_kinds = 1;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(export->tine, export->call, &request, &next)) {
            return pi_export_fail_call(export);
        }
        reply_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            if (strcmp(reply->messages[i]->id, before) > 0) return STATUS_OK;
            note_label(path, &reply->messages[i]);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor);
    return STATUS_OK;
}

static int find_all_labels(const PiExport *export, const Path *path)
{
    char child[STORE_ID_BYTES], ancestor[STORE_ID_BYTES];
    snprintf(child, sizeof(child), "%s", export->session->id);
    snprintf(ancestor, sizeof(ancestor), "%s", export->session->parent_id);
    for (size_t i = 0; i < ANCESTORS_MAX && *ancestor; i++) {
        GetSessionRequest request = GET_SESSION_REQUEST__INIT;
        CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
        request.session_id = ancestor;
        int code = find_labels(export, path, ancestor, child);
        if (!code) code = tine_get_session(export->tine, export->call, &request, &reply);
        if (code) return code == STATUS_NOT_FOUND ? STATUS_OK : code; // it may be purged meanwhile
        snprintf(child, sizeof(child), "%s", ancestor);
        snprintf(ancestor, sizeof(ancestor), "%s", reply->session->parent_id);
    }
    return STATUS_OK;
}

// Takes the originals of the session that an inherited entry belongs to; a purged one has none.
static int use_owner(PiExport *export, Path *path, const char *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
    if (strcmp(path->owner, session) == 0) return STATUS_OK;
    snprintf(path->owner, sizeof(path->owner), "%s", session);
    pi_originals_end(&export->originals);
    export->is_verbatim = false;
    request.session_id = (char *)(uintptr_t)session;
    int status = tine_get_session(export->tine, export->call, &request, &reply);
    if (!status) pi_export_use_originals(export, reply->session, /* is_verbatim= */ false);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static int write_entry(PiExport *export, Path *path, const char *id)
{
    CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
    CLEANUP(reply_freep) Original *original = NULL;
    if (pi_export_get(export, id, &reply)) return pi_export_fail_call(export);
    int code = use_owner(export, path, reply->message->session_id);
    if (!code) {
        code = pi_originals_take(&export->originals, export->tine, export->call, id, &original);
    }
    return code ? code : pi_line_write(export, reply->message, original);
}

// Writes the labels that are not on the path. An empty one only matters if it clears one that is.
static int write_labels(PiExport *export, const Path *path)
{
    char parent[PI_ALIAS_BYTES];
    int code = STATUS_OK;
    snprintf(parent, sizeof(parent), "%s", export->aliases.last_name);
    for (size_t i = path->count; i > 0 && !code; i--) {
        const Inherited *entry = &path->list[i - 1];
        if (!entry->label || (!*entry->label->text && !entry->is_labelled)) continue;
        code = pi_line_write_below(export, entry->label, parent);
        snprintf(parent, sizeof(parent), "%s", pi_alias_default(entry->label));
    }
    return code;
}

int pi_inherited_write(PiExport *export)
{
    Path path = {.list = NULL};
    int code = path_find(export, &path);
    if (!code && path.count > 0) code = find_all_labels(export, &path);
    for (size_t i = path.count; i > 0 && !code; i--)
        code = write_entry(export, &path, path.list[i - 1].id);
    if (!code) code = write_labels(export, &path);
    path_free(&path);
    return code;
}
