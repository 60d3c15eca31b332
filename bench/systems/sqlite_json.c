// SQLite with parts as JSON.

#include "sqlite_json.h"

#include <stdlib.h>

#include "json_parts.h"
#include "sqlite_store.h"

typedef struct Client {
    SqliteStore *store;
    JsonText json;  // of the entry that is appended
    Buffer history; // of history_bytes
} Client;

static Client *client_of(const Place *place, SqliteOptions options)
{
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    options.forks_max = place->forks_max;
    client->store = sqlite_store_open(place->directory, &options);
    return client;
}

void *sqlite_json_connect(const Place *place, bool is_full)
{
    return client_of(place, (SqliteOptions){.is_full = is_full});
}

void *sqlite_json_fill_open(const Place *place)
{
    return client_of(place, (SqliteOptions){.is_filling = true});
}

void sqlite_json_close(void *context)
{
    Client *client = context;
    sqlite_store_close(client->store);
    json_text_free(&client->json);
    buffer_free(&client->history);
    free(client);
}

void sqlite_json_create(void *client, const SessionSpec *spec, Id *out)
{
    sqlite_store_create(((Client *)client)->store, spec, out);
}

void sqlite_json_fork(void *client, const Id *session, const Id *message, Id *out)
{
    sqlite_store_fork(((Client *)client)->store, session, message, out);
}

void sqlite_json_append(void *context, const Id *session, const Entry *entry, Id *out)
{
    Client *client = context;
    client->json.size = 0;
    json_parts_write(&client->json, entry);
    SqliteMessage message = {
        .role = entry_role(entry), .parts = client->json.text, .parts_bytes = client->json.size};
    if (entry->kind == ENTRY_USER) message.preview = entry->text;
    if (entry->kind == ENTRY_ASSISTANT) {
        message.usage[0] = USAGE_INPUT;
        message.usage[1] = USAGE_OUTPUT;
        message.usage[2] = USAGE_CACHE_READ;
        message.usage[3] = USAGE_CACHE_WRITE;
        message.cost_usd = USAGE_COST_NANO_USD / 1e9;
    }
    sqlite_store_append(client->store, session, &message, out);
}

void sqlite_json_propagate(void *client, const Id *session)
{
    sqlite_store_propagate(((Client *)client)->store, session);
}

static void take_session(void *context, const SqliteSession *session)
{
    size_t *count = context;
    *count += session->id != NULL;
}

void sqlite_json_get_session(void *client, const Id *session)
{
    size_t count = 0;
    sqlite_store_get_session(((Client *)client)->store, session, take_session, &count);
}

static void decode(void *context, const SqliteMessage *message)
{
    json_parts_read(message->parts, message->parts_bytes, context, NULL);
}

void sqlite_json_get_message(void *client, const Id *message)
{
    Tally tally = {0, 0};
    sqlite_store_get_message(((Client *)client)->store, message, decode, &tally);
}

void sqlite_json_memories(void *client, const Id *session)
{
    (void)sqlite_store_memories(((Client *)client)->store, session);
}

void sqlite_json_mark(void *client, const Id *session, const Id *before)
{
    sqlite_store_mark(((Client *)client)->store, session, before);
}

typedef struct Copy {
    Client *client;
    Tally *tally;
} Copy;

static void copy_parts(void *context, const SqliteMessage *message)
{
    Copy *copy = context;
    Error error =
        buffer_append(&copy->client->history, slice(message->parts, message->parts_bytes));
    require(!error, "out of memory");
    copy->tally->messages++;
}

void sqlite_json_history_bytes(void *context, const Id *session, Tally *out)
{
    Client *client = context;
    *out = (Tally){0, 0};
    Error error = buffer_reset(&client->history, 0);
    require(!error, "out of memory");
    Copy copy = {client, out};
    sqlite_store_history(client->store, session, copy_parts, &copy);
}

void sqlite_json_history(void *client, const Id *session, Tally *out)
{
    *out = (Tally){0, 0};
    sqlite_store_history(((Client *)client)->store, session, decode, out);
}

void sqlite_json_window(void *client, const Id *session, Tally *out)
{
    *out = (Tally){0, 0};
    sqlite_store_window(((Client *)client)->store, session, decode, out);
}

static void preview_of(const void *parts, size_t parts_bytes, char out[161])
{
    Tally tally = {0, 0};
    json_parts_read(parts, parts_bytes, &tally, out);
}

size_t sqlite_json_list(void *client, size_t limit, const char *query)
{
    size_t count = 0;
    return sqlite_store_list(((Client *)client)->store, limit, query, preview_of, take_session,
                             &count);
}
