// gRPC C++ with SQLite behind it: the reference's schema, WAL, synchronous=NORMAL, each message as
// protobuf's bytes instead of JSON, as many connections as there are calls at once.

#include <stdio.h>
#include <stdlib.h>

#include "grpc_store.h"
#include "sqlite_store.h"

enum { FORKS_MAX = 100000 };

static const Id *id_at(const char *text)
{
    static _Thread_local Id ids[2];
    static _Thread_local size_t next;
    Id *id = &ids[next++ % 2];
    snprintf(id->text, sizeof(id->text), "%s", text);
    return id;
}

static void id_out(const Id *id, char *out)
{
    snprintf(out, GRPC_ID_BYTES, "%s", id->text);
}

static SqliteMessage message_of(const char *role, const char *preview, bool has_usage)
{
    SqliteMessage message = {.role = role, .preview = preview};
    if (!has_usage) return message;
    message.usage[0] = USAGE_INPUT;
    message.usage[1] = USAGE_OUTPUT;
    message.usage[2] = USAGE_CACHE_READ;
    message.usage[3] = USAGE_CACHE_WRITE;
    message.cost_usd = USAGE_COST_NANO_USD / 1e9;
    return message;
}

// The server's side.

static void *back_open(const char *directory)
{
    return sqlite_store_open(directory,
                             &(SqliteOptions){.has_blobs = true, .forks_max = FORKS_MAX});
}

static void back_create(void *store, const char *slug, const char *parent, char *out_id)
{
    Id id;
    sqlite_store_create(store, &(SessionSpec){slug, parent ? id_at(parent) : NULL}, &id);
    id_out(&id, out_id);
}

static void back_fork(void *store, const char *session, const char *message, char *out_id)
{
    Id id;
    sqlite_store_fork(store, id_at(session), id_at(message), &id);
    id_out(&id, out_id);
}

static void back_append(void *store, const char *session, const char *role, const char *preview,
                        bool has_usage, const void *bytes, size_t size, char *out_id)
{
    Id id;
    SqliteMessage message = message_of(role, preview, has_usage);
    message.parts = bytes;
    message.parts_bytes = size;
    sqlite_store_append(store, id_at(session), &message, &id);
    id_out(&id, out_id);
}

static void back_propagate(void *store, const char *session)
{
    sqlite_store_propagate(store, id_at(session));
}

typedef struct OnSession {
    GrpcOnSession *call;
    void *context;
} OnSession;

static void give_session(void *context, const SqliteSession *from)
{
    const OnSession *on = context;
    GrpcSession session = {from->id, from->slug, from->preview, {0}};
    for (size_t i = 0; i < 4; i++)
        session.own_totals[i] = from->own_totals[i];
    on->call(on->context, &session);
}

static void back_get_session(void *store, const char *id, GrpcOnSession *call, void *context)
{
    OnSession on = {call, context};
    sqlite_store_get_session(store, id_at(id), give_session, &on);
}

typedef struct OnMessage {
    GrpcOnMessage *call;
    void *context;
} OnMessage;

static void give_message(void *context, const SqliteMessage *from)
{
    const OnMessage *on = context;
    on->call(on->context, from->id, from->parts, from->parts_bytes);
}

static void back_get_message(void *store, const char *id, GrpcOnMessage *call, void *context)
{
    OnMessage on = {call, context};
    sqlite_store_get_message(store, id_at(id), give_message, &on);
}

static void back_memories(void *store, const char *session)
{
    (void)sqlite_store_memories(store, id_at(session));
}

static void back_mark(void *store, const char *session, const char *before)
{
    sqlite_store_mark(store, id_at(session), id_at(before));
}

static void back_history(void *store, const char *session, bool since_marker, GrpcOnMessage *call,
                         void *context)
{
    OnMessage on = {call, context};
    if (since_marker) {
        sqlite_store_window(store, id_at(session), give_message, &on);
    } else {
        sqlite_store_history(store, id_at(session), give_message, &on);
    }
}

static void back_list(void *store, size_t limit, const char *query, GrpcOnSession *call,
                      void *context)
{
    OnSession on = {call, context};
    (void)sqlite_store_list(store, limit, query, grpc_store_preview, give_session, &on);
}

void serve_grpc_sqlite(const char *socket, const char *directory)
{
    static const GrpcBackend backend = {back_open,        back_create,    back_fork,
                                        back_append,      back_propagate, back_get_session,
                                        back_get_message, back_memories,  back_mark,
                                        back_history,     back_list};
    grpc_store_serve(socket, directory, &backend);
}

// The client's side; one that fills has SQLite itself.

typedef struct Client {
    GrpcStore *grpc;    // or
    SqliteStore *store; // while it fills
} Client;

static Client *client_make(void)
{
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    return client;
}

static void start(Place *place)
{
    peer_start(&place->server, "grpc-sqlite", place->directory);
}

static void stop(Place *place)
{
    peer_stop(&place->server);
}

static void *connect_grpc(const Place *place)
{
    Client *client = client_make();
    client->grpc = grpc_store_open(place->server.socket);
    return client;
}

static void disconnect(void *context)
{
    Client *client = context;
    grpc_store_close(client->grpc);
    free(client);
}

static void *fill_open(const Place *place)
{
    Client *client = client_make();
    client->store = sqlite_store_open(place->directory,
                                      &(SqliteOptions){.has_blobs = true, .is_filling = true});
    return client;
}

static void fill_close(void *context)
{
    Client *client = context;
    sqlite_store_close(client->store);
    free(client);
}

static void create_session(void *context, const SessionSpec *spec, Id *out)
{
    const Client *client = context;
    if (client->store) {
        sqlite_store_create(client->store, spec, out);
    } else {
        grpc_store_create(client->grpc, spec->slug, spec->parent ? spec->parent->text : NULL,
                          out->text);
    }
}

static void fork_session(void *context, const Id *session, const Id *message, Id *out)
{
    const Client *client = context;
    if (client->store) {
        sqlite_store_fork(client->store, session, message, out);
    } else {
        grpc_store_fork(client->grpc, session->text, message->text, out->text);
    }
}

static void append_filling(SqliteStore *store, const Id *session, const Entry *entry, Id *out)
{
    static const char *const roles[] = {"user", "assistant", "tool"};
    SqliteMessage message =
        message_of(roles[entry->kind], entry->kind == ENTRY_USER ? entry->text : NULL,
                   entry->kind == ENTRY_ASSISTANT);
    void *bytes = grpc_store_encode((GrpcRole)entry->kind, entry->text, entry->text_bytes,
                                    &message.parts_bytes);
    message.parts = bytes;
    sqlite_store_append(store, session, &message, out);
    free(bytes);
}

static void append(void *context, const Id *session, const Entry *entry, Id *out)
{
    const Client *client = context;
    if (client->store) {
        append_filling(client->store, session, entry, out);
    } else {
        grpc_store_append(client->grpc, session->text, (GrpcRole)entry->kind, entry->text,
                          entry->text_bytes, out ? out->text : NULL);
    }
}

static void propagate(void *client, const Id *session)
{
    grpc_store_propagate(((Client *)client)->grpc, session->text);
}

static void get_session(void *client, const Id *session)
{
    grpc_store_get_session(((Client *)client)->grpc, session->text);
}

static void get_message(void *client, const Id *message)
{
    grpc_store_get_message(((Client *)client)->grpc, message->text);
}

static void list_memories(void *client, const Id *session)
{
    grpc_store_memories(((Client *)client)->grpc, session->text);
}

static void mark(void *context, const Id *session, const Id *before)
{
    const Client *client = context;
    if (client->store) {
        sqlite_store_mark(client->store, session, before);
    } else {
        grpc_store_mark(client->grpc, session->text, before->text);
    }
}

static void history(void *client, const Id *session, Tally *out)
{
    grpc_store_history(((Client *)client)->grpc, session->text, /* since_marker= */ false,
                       &out->messages, &out->text_bytes);
}

static void window(void *client, const Id *session, Tally *out)
{
    grpc_store_history(((Client *)client)->grpc, session->text, /* since_marker= */ true,
                       &out->messages, &out->text_bytes);
}

static size_t list(void *client, size_t limit, const char *query)
{
    return grpc_store_list(((Client *)client)->grpc, limit, query);
}

SYSTEM(grpc_sqlite) = {
    .name = "grpc-sqlite",
    .about = "gRPC C++ over a Unix socket, SQLite behind it, WAL, NORMAL, messages as protobuf",
    .order = 50,
    .durability = DURABILITY_PROCESS,
    .start = start,
    .stop = stop,
    .connect = connect_grpc,
    .disconnect = disconnect,
    .fill_open = fill_open,
    .fill_close = fill_close,
    .create_session = create_session,
    .fork_session = fork_session,
    .append = append,
    .propagate = propagate,
    .get_session = get_session,
    .get_message = get_message,
    .list_memories = list_memories,
    .mark = mark,
    .history = history,
    .window = window,
    .list = list,
};
