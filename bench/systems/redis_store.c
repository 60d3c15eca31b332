// Redis.

#include "redis_store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "json_parts.h"

enum { LISTED_AT_ONCE = 200, PREVIEW_BYTES_MAX = 160 };

typedef struct Client {
    redisContext *redis;
    JsonText json;
    Place filling; // of one that fills: the server that is there for it
} Client;

// It listens before it has read its file.
static void wait_until_loaded(const Peer *server)
{
    redisContext *redis = redisConnectUnix(server->socket);
    require(redis && !redis->err, "cannot connect to Redis");
    for (bool is_loading = true; is_loading;) {
        redisReply *reply = redisCommand(redis, "PING");
        require(reply != NULL, "Redis: %s", redis->errstr);
        is_loading = reply->type == REDIS_REPLY_ERROR;
        freeReplyObject(reply);
    }
    redisFree(redis);
}

void redis_store_start(Place *place, const char *appendfsync)
{
    place->server = (Peer){.pid = 0};
    peer_place(&place->server);
    const char *arguments[] = {"redis-server",
                               "--port",
                               "0",
                               "--unixsocket",
                               place->server.socket,
                               "--dir",
                               place->directory,
                               "--save",
                               "",
                               "--appendonly",
                               "yes",
                               "--appendfsync",
                               appendfsync,
                               "--logfile",
                               "/dev/null",
                               NULL};
    peer_spawn(&place->server, "redis-server", arguments);
    peer_wait(&place->server, "redis-server");
    wait_until_loaded(&place->server);
}

void redis_store_stop(Place *place)
{
    peer_stop(&place->server);
}

void *redis_store_connect(const Place *place)
{
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    client->redis = redisConnectUnix(place->server.socket);
    require(client->redis && !client->redis->err, "cannot connect to Redis");
    return client;
}

// By a server that does not flush each write, on the files that the measured one will read.
void *redis_store_fill_open(const Place *place)
{
    Place filling = *place;
    redis_store_start(&filling, "no");
    Client *client = redis_store_connect(&filling);
    client->filling = filling;
    return client;
}

void redis_store_fill_close(void *context)
{
    Place filling = ((Client *)context)->filling;
    redis_store_disconnect(context);
    redis_store_stop(&filling);
}

void redis_store_disconnect(void *context)
{
    Client *client = context;
    redisFree(client->redis);
    json_text_free(&client->json);
    free(client);
}

static redisReply *checked(const Client *client, void *reply)
{
    redisReply *answer = reply;
    require(answer != NULL, "Redis: %s", client->redis->errstr);
    require(answer->type != REDIS_REPLY_ERROR, "Redis: %s", answer->str);
    return answer;
}

#define COMMAND(client, ...) checked(client, redisCommand((client)->redis, __VA_ARGS__))
#define SEND(client, ...)                                                                          \
    require(redisAppendCommand((client)->redis, __VA_ARGS__) == REDIS_OK, "Redis: out of memory")

static redisReply *next_reply(Client *client)
{
    void *reply = NULL;
    require(redisGetReply(client->redis, &reply) == REDIS_OK, "Redis: %s", client->redis->errstr);
    return checked(client, reply);
}

static void skip_replies(Client *client, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject(next_reply(client));
}

// `line` is that of the ancestors: "session cut-off session cut-off …", the root first.
static void create(Client *client, const char *slug, const char *parent, const char *line, Id *out)
{
    redisReply *number = COMMAND(client, "INCR sessions:last");
    snprintf(out->text, sizeof(out->text), "%lld", number->integer);
    SEND(client, "MULTI");
    SEND(client,
         "HSET session:%s slug %s project_dir " PROJECT_DIR " provider " MODEL_PROVIDER
         " model " MODEL_NAME " kind primary parent %s line %s entries 0 preview %s",
         out->text, slug, parent, line, "");
    SEND(client, "ZADD sessions %lld %s", number->integer, out->text);
    SEND(client, "EXEC");
    skip_replies(client, 4);
    freeReplyObject(number);
}

void redis_create(void *client, const SessionSpec *spec, Id *out)
{
    create(client, spec->slug, spec->parent ? spec->parent->text : "", "", out);
}

// A message's id is "session stream-id".
static const char *stream_id(const Id *message)
{
    return strchr(message->text, ' ') + 1;
}

void redis_fork(void *context, const Id *session, const Id *message, Id *out)
{
    Client *client = context;
    redisReply *line = COMMAND(client, "HGET session:%s line", session->text);
    size_t size = line->len + strlen(message->text) + 2;
    char *longer = malloc(size);
    require(longer != NULL, "out of memory");
    snprintf(longer, size, "%s%s%s", line->str, line->len ? " " : "", message->text);
    create(client, "", session->text, longer, out);
    free(longer);
    freeReplyObject(line);
}

void redis_append(void *context, const Id *session, const Entry *entry, Id *out)
{
    Client *client = context;
    client->json.size = 0;
    json_parts_write(&client->json, entry);
    const char *key = session->text;
    SEND(client, "MULTI");
    if (entry->kind == ENTRY_ASSISTANT) {
        SEND(client, "XADD log:%s * role assistant parts %b in %d out %d read %d write %d cost %d",
             key, client->json.text, client->json.size, USAGE_INPUT, USAGE_OUTPUT, USAGE_CACHE_READ,
             USAGE_CACHE_WRITE, USAGE_COST_NANO_USD);
        SEND(client, "HINCRBY session:%s own_cost %d", key, USAGE_COST_NANO_USD);
    } else {
        SEND(client, "XADD log:%s * role %s parts %b", key, entry_role(entry), client->json.text,
             client->json.size);
    }
    size_t preview = entry->text_bytes < PREVIEW_BYTES_MAX ? entry->text_bytes : PREVIEW_BYTES_MAX;
    if (entry->kind != ENTRY_TOOL)
        SEND(client, "HSET session:%s last_%s %b", key, entry_role(entry), entry->text, preview);
    SEND(client, "HINCRBY session:%s entries 1", key);
    SEND(client, "EXEC");
    skip_replies(client,
                 (size_t)(3 + (entry->kind != ENTRY_TOOL) + (entry->kind == ENTRY_ASSISTANT)));
    redisReply *done = next_reply(client);
    require(done->type == REDIS_REPLY_ARRAY, "Redis: an append was not run");
    if (out) snprintf(out->text, sizeof(out->text), "%.30s %.45s", key, done->element[0]->str);
    freeReplyObject(done);
}

void redis_propagate(void *context, const Id *session)
{
    static const char SCRIPT[] =
        "local id = KEYS[1] while id and id ~= '' do "
        "local key = 'session:' .. id "
        "for i = 1, #ARGV, 2 do redis.call('HINCRBY', key, ARGV[i], ARGV[i + 1]) end "
        "id = redis.call('HGET', key, 'parent') end return 1";
    Client *client = context;
    freeReplyObject(COMMAND(client, "EVAL %s 1 %s in %d out %d read %d write %d cost %d", SCRIPT,
                            session->text, USAGE_INPUT, USAGE_OUTPUT, USAGE_CACHE_READ,
                            USAGE_CACHE_WRITE, USAGE_COST_NANO_USD));
}

void redis_get_session(void *client, const Id *session)
{
    redisReply *reply = COMMAND((Client *)client, "HGETALL session:%s", session->text);
    require(reply->elements > 0, "no session %s", session->text);
    freeReplyObject(reply);
}

static void tally_entry(const redisReply *entry, Tally *tally)
{
    const redisReply *fields = entry->element[1];
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        if (strcmp(fields->element[i]->str, "parts") != 0) continue;
        json_parts_read(fields->element[i + 1]->str, fields->element[i + 1]->len, tally, NULL);
    }
}

void redis_get_message(void *context, const Id *message)
{
    Client *client = context;
    const char *id = stream_id(message);
    Tally tally = {0, 0};
    redisReply *reply = COMMAND(client, "XRANGE log:%b %s %s", message->text,
                                (size_t)(id - message->text - 1), id, id);
    require(reply->elements == 1, "no message %s", message->text);
    tally_entry(reply->element[0], &tally);
    freeReplyObject(reply);
}

void redis_memories(void *client, const Id *session)
{
    freeReplyObject(COMMAND((Client *)client, "LRANGE memories:%s 0 -1", session->text));
}

void redis_mark(void *client, const Id *session, const Id *before)
{
    freeReplyObject(COMMAND((Client *)client, "HSET session:%s marker %s summary %s", session->text,
                            stream_id(before), "what was done so far"));
}

static void read_entries(Client *client, Tally *tally, bool is_decoded)
{
    redisReply *reply = next_reply(client);
    for (size_t i = 0; i < reply->elements; i++) {
        if (is_decoded) {
            tally_entry(reply->element[i], tally);
        } else {
            tally->messages++;
        }
    }
    freeReplyObject(reply);
}

static void history(Client *client, const Id *session, Tally *out, bool is_decoded)
{
    *out = (Tally){0, 0};
    redisReply *line = COMMAND(client, "HGET session:%s line", session->text);
    size_t count = 1;
    for (char *rest = line->str, *ancestor; (ancestor = strsep(&rest, " ")) && *ancestor;) {
        const char *cutoff = strsep(&rest, " ");
        SEND(client, "XRANGE log:%s - %s", ancestor, cutoff);
        count++;
    }
    SEND(client, "XRANGE log:%s - +", session->text);
    for (size_t i = 0; i < count; i++)
        read_entries(client, out, is_decoded);
    freeReplyObject(line);
}

void redis_history_bytes(void *client, const Id *session, Tally *out)
{
    history(client, session, out, /* is_decoded= */ false);
}

void redis_history(void *client, const Id *session, Tally *out)
{
    history(client, session, out, /* is_decoded= */ true);
}

// Of a session without forks.
void redis_window(void *context, const Id *session, Tally *out)
{
    Client *client = context;
    *out = (Tally){0, 0};
    redisReply *marker = COMMAND(client, "HGET session:%s marker", session->text);
    SEND(client, "XRANGE log:%s (%s +", session->text, marker->str ? marker->str : "0-0");
    read_entries(client, out, /* is_decoded= */ true);
    freeReplyObject(marker);
}

static bool has_query(const redisReply *session, const char *query)
{
    if (!query) return true;
    for (size_t i = 0; i + 1 < session->elements; i += 2) {
        const char *name = session->element[i]->str;
        if (strcmp(name, "slug") != 0 && strcmp(name, "project_dir") != 0) continue;
        if (strcasestr(session->element[i + 1]->str, query)) return true;
    }
    return false;
}

size_t redis_list(void *context, size_t limit, const char *query)
{
    Client *client = context;
    size_t found = 0, at_once = limit < LISTED_AT_ONCE ? limit : LISTED_AT_ONCE;
    if (query) at_once = LISTED_AT_ONCE;
    for (size_t from = 0; found < limit; from += at_once) {
        redisReply *ids = COMMAND(client, "ZREVRANGE sessions %llu %llu", (unsigned long long)from,
                                  (unsigned long long)(from + at_once - 1));
        for (size_t i = 0; i < ids->elements; i++)
            SEND(client, "HGETALL session:%s", ids->element[i]->str);
        for (size_t i = 0; i < ids->elements; i++) {
            redisReply *session = next_reply(client);
            if (found < limit && has_query(session, query)) found++;
            freeReplyObject(session);
        }
        bool is_end = ids->elements < at_once;
        freeReplyObject(ids);
        if (is_end) break;
    }
    return found;
}
