// Reads the session's log and its originals once.

#include "importers/pi/pi_known.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "importers/field.h"
#include "importers/pi/pi_entry.h"

enum { EXTERNAL_ARENA_BYTES = 64 * 1024 };

static char *text_of(const PiFile *file, uint32_t entry)
{
    return (char *)(uintptr_t)pi_file_id(file, entry);
}

static char *name_by_line(Arena *arena, const PiFile *file, uint32_t entry)
{
    const char *id = pi_file_id(file, entry);
    size_t size = strlen(id) + 16;
    char *text = arena_alloc(arena, size);
    if (!text) return NULL;
    snprintf(text, size, "%s@%u", id, file->entries[entry].line);
    return field_name(arena, text);
}

char *pi_external_id(Arena *arena, const PiFile *file, uint32_t entry)
{
    return file->entries[entry].is_shadowed ? name_by_line(arena, file, entry)
                                            : field_name(arena, text_of(file, entry));
}

// An entry of the log whose ID several entries of the file have.
typedef struct Claim {
    uint32_t latest; // of those in the file
    char store_id[STORE_ID_BYTES];
} Claim;

// The state while the log is read.
typedef struct Known {
    PiFile *file;
    PiModel *model;
    Arena arena;       // of one entry
    bool has_made_ids; // the entries so far were stored from version 1 …
    uint32_t number;   // … and are this many
    Claim *claims;     // owned
    size_t claim_count, claim_capacity;
} Known;

static bool is_called(Known *known, uint32_t entry, const char *external, bool by_line)
{
    arena_reset(&known->arena, PI_LINE_BYTES_MAX);
    const char *id = by_line ? name_by_line(&known->arena, known->file, entry)
                             : field_name(&known->arena, text_of(known->file, entry));
    return id && strcmp(id, external) == 0;
}

// Finds an entry whose external ID was cut. There are few of them.
static uint32_t find_cut(Known *known, const char *external, bool *out_has_line)
{
    if (strlen(external) + 3 < STRING_BYTES_MAX) return ENTRY_NONE;
    for (uint32_t i = 0; i < known->file->count; i++) {
        if (is_called(known, i, external, /* by_line= */ false)) {
            return pi_file_find(known->file, pi_file_id(known->file, i));
        }
        *out_has_line = is_called(known, i, external, /* by_line= */ true);
        if (*out_has_line) return i;
    }
    return ENTRY_NONE;
}

// Whether `external` is the ID that was made for the next entry when the file was of version 1.
static bool has_made_id(Known *known, const char *external)
{
    char *made = NULL;
    arena_reset(&known->arena, PI_LINE_BYTES_MAX);
    return known->number < known->file->count &&
           pi_file_make_id(known->file, known->number, &known->arena, &made) == ERROR_NONE &&
           strcmp(made, external) == 0;
}

// Finds the entry with this external ID. `out_has_line` is set if it has the form "ID@LINE".
static uint32_t find(Known *known, const char *external, bool *out_has_line)
{
    const PiFile *file = known->file;
    const char *at = strrchr(external, '@');
    *out_has_line = false;
    if (known->has_made_ids) known->has_made_ids = has_made_id(known, external);
    if (known->has_made_ids) return known->number++;
    uint32_t entry = pi_file_find(file, external);
    if (entry != ENTRY_NONE) return entry;
    if (at) entry = pi_file_at_line(file, strtoul(at + 1, NULL, 10));
    *out_has_line = entry != ENTRY_NONE && is_called(known, entry, external, /* by_line= */ true);
    return *out_has_line ? entry : find_cut(known, external, out_has_line);
}

static Error add_claim(Known *known, uint32_t latest, const char *store_id)
{
    if (known->claim_count == known->claim_capacity) {
        size_t capacity = known->claim_capacity > 0 ? known->claim_capacity * 2 : 16;
        Claim *claims = realloc(known->claims, capacity * sizeof(*claims));
        if (!claims) return ERROR_OUT_OF_MEMORY;
        known->claims = claims;
        known->claim_capacity = capacity;
    }
    Claim *claim = &known->claims[known->claim_count++];
    claim->latest = latest;
    snprintf(claim->store_id, sizeof(claim->store_id), "%s", store_id);
    return ERROR_NONE;
}

static Error note_row(Known *known, const Message *message)
{
    if (!message->external || strcmp(message->external->source, PI_SOURCE) != 0) return ERROR_NONE;
    bool has_line = false;
    uint32_t found = find(known, message->external->id, &has_line);
    if (found == ENTRY_NONE) return ERROR_NONE;
    PiEntry *entry = &known->file->entries[found];
    if (!message->deleted_at) {
        Error error = pi_model_note(known->model, found, message->model, /* is_new= */ false);
        if (error) return error;
    }
    if (!has_line && entry->is_later) return add_claim(known, found, message->id);
    if (has_line) entry->is_shadowed = true;
    snprintf(entry->store_id, STORE_ID_BYTES, "%s", message->id);
    return ERROR_NONE;
}

static int compare_claims(const void *a, const void *b)
{
    uint32_t first = ((const Claim *)a)->latest, second = ((const Claim *)b)->latest;
    return first < second ? -1 : first > second;
}

// Gives an ID that several entries have to the first of them in the file that is not in the store
// as "ID@LINE". Files grow, and an ID keeps the meaning that it had when it was stored.
static void settle_claims(Known *known)
{
    PiFile *file = known->file;
    if (known->claim_count == 0) return;
    qsort(known->claims, known->claim_count, sizeof(Claim), compare_claims);
    for (uint32_t i = 0; i < file->count; i++) {
        PiEntry *entry = &file->entries[i];
        if ((!entry->is_shadowed && !entry->is_later) || *entry->store_id) continue;
        Claim wanted = {.latest = pi_file_find(file, pi_file_id(file, i))};
        Claim *claim =
            bsearch(&wanted, known->claims, known->claim_count, sizeof(Claim), compare_claims);
        if (!claim || !*claim->store_id) continue;
        file->entries[claim->latest].is_shadowed = true;
        entry->is_shadowed = false;
        memcpy(entry->store_id, claim->store_id, sizeof(entry->store_id));
        *claim->store_id = '\0';
    }
}

static int out_of_memory(Importer *importer)
{
    snprintf(importer->status.message, sizeof(importer->status.message), "out of memory");
    return STATUS_RESOURCE_EXHAUSTED;
}

static int find_entries(Importer *importer, char *session, Known *known)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *reply = NULL;
    request.session_id = session;
    request.deleted = DELETED_FILTER_INCLUDE;
    do {
        ListMessagesResponse *next = NULL;
        int status = tine_list_messages(importer->tine, &importer->call, &request, &next);
        if (status) return status;
        reply_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            if (note_row(known, reply->messages[i])) return out_of_memory(importer);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor);
    settle_claims(known);
    return STATUS_OK;
}

typedef struct Stored {
    const char *id;
    uint32_t entry;
} Stored;

static int compare(const void *a, const void *b)
{
    return strcmp(((const Stored *)a)->id, ((const Stored *)b)->id);
}

static int find_originals(Importer *importer, char *session, PiFile *file, Stored *stored,
                          size_t count)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    CLEANUP(reply_freep) ListOriginalsResponse *reply = NULL;
    request.session_id = session;
    do {
        ListOriginalsResponse *next = NULL;
        int status = tine_list_originals(importer->tine, &importer->call, &request, &next);
        if (status) return status;
        reply_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_originals; i++) {
            Stored wanted = {.id = reply->originals[i]->message_id};
            const Stored *found = bsearch(&wanted, stored, count, sizeof(*stored), compare);
            if (found) file->entries[found->entry].has_original = true;
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor);
    return STATUS_OK;
}

int pi_known(Importer *importer, char *session, PiFile *file, PiModel *model)
{
    Known known = {.file = file, .model = model, .has_made_ids = !file->makes_ids};
    arena_init(&known.arena, EXTERNAL_ARENA_BYTES);
    int status = find_entries(importer, session, &known);
    arena_free(&known.arena);
    free(known.claims);
    if (status) return status;
    Stored *stored = calloc(file->count > 0 ? file->count : 1, sizeof(*stored));
    if (!stored) return out_of_memory(importer);
    size_t count = 0;
    for (uint32_t i = 0; i < file->count; i++) {
        if (*file->entries[i].store_id) stored[count++] = (Stored){file->entries[i].store_id, i};
    }
    qsort(stored, count, sizeof(*stored), compare);
    status = find_originals(importer, session, file, stored, count);
    free(stored);
    return status;
}
