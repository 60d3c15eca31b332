// What is there already: the session's log and its originals, once through.

#include "pi/pi_known.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "pi/pi_entry.h"

enum { EXTERNAL_ARENA_BYTES = 64 * 1024 };

char *pi_external_id(Arena *arena, const PiFile *file, uint32_t entry)
{
    const char *id = pi_file_id(file, entry);
    if (!file->entries[entry].is_shadowed) return pi_name(arena, (char *)(uintptr_t)id);
    size_t size = strlen(id) + 16;
    char *text = arena_alloc(arena, size);
    if (!text) return NULL;
    snprintf(text, size, "%s@%u", id, file->entries[entry].line);
    return pi_name(arena, text);
}

static bool is_called(Arena *arena, const PiFile *file, uint32_t entry, const char *external)
{
    arena_reset(arena, PI_LINE_BYTES_MAX);
    const char *id = pi_external_id(arena, file, entry);
    return id && strcmp(id, external) == 0;
}

static uint32_t find(Arena *arena, const PiFile *file, const char *external)
{
    uint32_t entry = pi_file_find(file, external);
    if (entry != PI_NONE) return entry;
    // One that is shadowed, or has a long name: these are few.
    bool is_rare = strchr(external, '@') || strlen(external) == STRING_BYTES_MAX;
    for (uint32_t i = 0; is_rare && i < file->count; i++) {
        if (is_called(arena, file, i, external)) return i;
    }
    return PI_NONE;
}

static int find_entries(Cli *cli, Arena *arena, char *session, PiFile *file)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(message_freep) ListMessagesResponse *reply = NULL;
    request.session_id = session;
    request.deleted = DELETED_FILTER_INCLUDE;
    do {
        ListMessagesResponse *next = NULL;
        int status = tine_list_messages(cli->tine, &cli->call, &request, &next);
        if (status) return status;
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            const Message *message = reply->messages[i];
            if (!message->external || strcmp(message->external->source, PI_SOURCE) != 0) continue;
            uint32_t entry = find(arena, file, message->external->id);
            if (entry == PI_NONE) continue;
            snprintf(file->entries[entry].store_id, PI_STORE_ID_BYTES, "%s", message->id);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor);
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

static int find_originals(Cli *cli, char *session, PiFile *file, Stored *stored, size_t count)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    CLEANUP(message_freep) ListOriginalsResponse *reply = NULL;
    request.session_id = session;
    do {
        ListOriginalsResponse *next = NULL;
        int status = tine_list_originals(cli->tine, &cli->call, &request, &next);
        if (status) return status;
        message_freep(&reply);
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

int pi_known(Cli *cli, char *session, PiFile *file)
{
    Arena arena;
    arena_init(&arena, EXTERNAL_ARENA_BYTES);
    int status = find_entries(cli, &arena, session, file);
    arena_free(&arena);
    Stored *stored = calloc(file->count > 0 ? file->count : 1, sizeof(*stored));
    if (!stored) {
        snprintf(cli->status.message, sizeof(cli->status.message), "out of memory");
        return STATUS_RESOURCE_EXHAUSTED;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < file->count; i++) {
        if (*file->entries[i].store_id) stored[count++] = (Stored){file->entries[i].store_id, i};
    }
    qsort(stored, count, sizeof(*stored), compare);
    if (!status) status = find_originals(cli, session, file, stored, count);
    free(stored);
    return status;
}
