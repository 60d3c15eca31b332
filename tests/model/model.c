// The model: sessions and their entries.

#include "model.h"

#include <stdlib.h>

static void *grow(void *array, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) return array;
    *capacity = *capacity ? 2 * *capacity : 8;
    void *larger = realloc(array, *capacity * item_bytes);
    if (!larger) abort();
    return larger;
}

static void entry_free(Entry *entry)
{
    free(entry->text);
    free(entry);
}

static void session_free(ModelSession *session)
{
    for (size_t i = 0; i < session->entry_count; i++)
        entry_free(session->entries[i]);
    for (size_t i = 0; i < session->memory_count; i++) {
        tine__v1__memory__free_unpacked(session->memories[i], NULL);
    }
    for (size_t i = 0; i < session->call_count; i++)
        tine__v1__call__free_unpacked(session->calls[i], NULL);
    free(session->calls);
    tine__v1__session__free_unpacked(session->record, NULL);
    tine__v1__todos__free_unpacked(session->todos, NULL);
    free(session->entries);
    free(session->reads);
    free(session->memories);
    free(session);
}

void model_free(Model *model)
{
    for (size_t i = 0; i < model->count; i++)
        session_free(model->sessions[i]);
    free(model->sessions);
    free(model->walk);
}

ModelSession *model_session_add(Model *model, Session *record, ModelSession *parent)
{
    ModelSession *session = calloc(1, sizeof(ModelSession));
    if (!session) abort();
    memcpy(session->id, record->id, ULID_TEXT_BYTES);
    session->record = record;
    session->parent = parent;
    session->is_touched = true;
    model->sessions = grow(model->sessions, model->count, &model->capacity, sizeof(ModelSession *));
    model->sessions[model->count++] = session;
    return session;
}

ModelSession *model_session(const Model *model, const char *id)
{
    for (size_t i = 0; i < model->count; i++) {
        if (strcmp(model->sessions[i]->id, id) == 0) {
            return model->sessions[i]->is_tombstone ? NULL : model->sessions[i];
        }
    }
    return NULL;
}

Entry *model_entry_add(ModelSession *session, const char *id, Entry *parent)
{
    Entry *entry = calloc(1, sizeof(Entry));
    if (!entry) abort();
    memcpy(entry->id, id, ULID_TEXT_BYTES);
    entry->owner = session;
    entry->parent = parent;
    entry->sequence = session->entry_count;
    session->entries =
        grow(session->entries, session->entry_count, &session->entry_capacity, sizeof(Entry *));
    session->entries[session->entry_count++] = entry;
    session->head = entry;
    model_read_add(session, parent);
    return entry;
}

void model_read_add(ModelSession *session, const Entry *entry)
{
    if (!entry || entry->owner == session) return;
    for (size_t i = 0; i < session->read_count; i++) {
        ModelRead *read = &session->reads[i];
        if (read->session != entry->owner) continue;
        if (strcmp(entry->id, read->last->id) > 0) read->last = entry;
        return;
    }
    session->reads = realloc(session->reads, (session->read_count + 1) * sizeof(ModelRead));
    if (!session->reads) abort();
    session->reads[session->read_count++] = (ModelRead){entry->owner, entry};
}

Entry **model_history(Model *model, Entry *head, size_t *out_count)
{
    size_t count = 0;
    for (Entry *entry = head; entry; entry = entry->parent) {
        model->walk = grow(model->walk, count, &model->walk_capacity, sizeof(Entry *));
        model->walk[count++] = entry;
    }
    for (size_t i = 0; i < count / 2; i++) {
        Entry *swapped = model->walk[i];
        model->walk[i] = model->walk[count - 1 - i];
        model->walk[count - 1 - i] = swapped;
    }
    *out_count = count;
    return model->walk;
}

bool model_history_holds(const Entry *head, const Entry *wanted)
{
    const Entry *entry = head;
    while (entry && entry != wanted)
        entry = entry->parent;
    return entry != NULL;
}

// "An ancestor reached through origins owns it and its id is not past the smallest cut-off on
// that path": `cut_off` is the smallest so far. A session that this search has seen with the same
// cut-off or a later one shows nothing new.
static bool is_reached(Model *model, ModelSession *session, const char *cut_off,
                       const Entry *wanted)
{
    if (session->mark == model->mark && strcmp(cut_off, session->mark_cut_off) <= 0) return false;
    session->mark = model->mark;
    session->mark_cut_off = cut_off;
    if (wanted->owner == session && strcmp(wanted->id, cut_off) <= 0) return true;
    for (size_t i = 0; i < session->read_count; i++) {
        const ModelRead *read = &session->reads[i];
        const char *smallest = strcmp(read->last->id, cut_off) < 0 ? read->last->id : cut_off;
        if (is_reached(model, read->session, smallest, wanted)) return true;
    }
    return false;
}

bool model_in_tree(Model *model, ModelSession *session, const Entry *entry)
{
    model->mark++;
    return is_reached(model, session, "no cut-off: letters are after all ids", entry);
}

size_t model_history_owners(Model *model, const Entry *head)
{
    size_t count = 0;
    model->mark++;
    for (const Entry *entry = head; entry; entry = entry->parent) {
        count += entry->owner->mark != model->mark;
        entry->owner->mark = model->mark;
    }
    return count;
}

static bool reads(const ModelSession *reader, const ModelSession *session)
{
    for (size_t i = 0; i < reader->read_count; i++) {
        if (reader->reads[i].session == session) return true;
    }
    return false;
}

bool model_is_read(const Model *model, const ModelSession *session)
{
    for (size_t i = 0; i < model->count; i++) {
        if (reads(model->sessions[i], session)) return true;
    }
    return false;
}

static void session_remove(Model *model, size_t index)
{
    session_free(model->sessions[index]);
    memmove(&model->sessions[index], &model->sessions[index + 1],
            (model->count - index - 1) * sizeof(ModelSession *));
    model->count--;
}

size_t model_purge(Model *model, ModelSession *session)
{
    for (size_t i = 0; i < model->count; i++) {
        ModelSession *child = model->sessions[i];
        if (child->parent != session) continue;
        child->parent = NULL;
        record_set(&child->record->parent_id, "");
        child->is_touched = true;
    }
    session->is_tombstone = true;
    session->parent = NULL;
    // A tombstone is younger than all that it reads: going down meets readers first.
    size_t count_before = model->count;
    for (size_t i = model->count; i-- > 0;) {
        if (model->sessions[i]->is_tombstone && !model_is_read(model, model->sessions[i])) {
            session_remove(model, i);
        }
    }
    return count_before - model->count;
}

void record_set(char **field, const char *value)
{
    if (*field != protobuf_c_empty_string) free(*field);
    *field = strdup(value);
    if (!*field) abort();
}
