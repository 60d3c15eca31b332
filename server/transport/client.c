// Clients: a hash table by the connection's number. An entry outlives its connection until the last
// of its requests is done with.

#include "transport/client.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"

enum { BUCKETS = 1024 };

struct Client {
    uint32_t pipe_id;
    bool needs_token;
    bool is_connected;
    bool is_cut_off;
    size_t running, refused, unsent;
    size_t unsent_bytes;
    uint64_t taken;
    ClientTurn *waiting, **waiting_end; // oldest first; they count as running
    bool is_ready;                      // is in the list of those
    Client *next;                       // in its bucket
    Client *next_ready;
};

struct Clients {
    size_t count_max;
    pthread_mutex_t mutex; // guards all below, and what the entries count
    size_t count;
    size_t unsent_bytes, waiting_bytes; // of all
    Client *buckets[BUCKETS];
    Client *ready, **ready_end; // somebody's turn may have come
    ClientReply unsent;         // of all, a ring from the oldest on; of itself only the links
    uint64_t look;
};

Error clients_open(size_t count_max, Clients **out)
{
    Clients *clients = calloc(1, sizeof(Clients));
    if (!clients) return ERROR_OUT_OF_MEMORY;
    clients->count_max = count_max;
    clients->ready_end = &clients->ready;
    clients->unsent.next = clients->unsent.previous = &clients->unsent;
    pthread_mutex_init(&clients->mutex, NULL);
    *out = clients;
    return ERROR_NONE;
}

void clients_close(Clients *clients)
{
    if (!clients) return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (clients->buckets[i]) {
            Client *client = clients->buckets[i];
            clients->buckets[i] = client->next;
            free(client);
        }
    }
    pthread_mutex_destroy(&clients->mutex);
    free(clients);
}

// Of a connection that is open; NULL: there is none.
static Client *find(Clients *clients, uint32_t pipe_id)
{
    Client *client = clients->buckets[pipe_id % BUCKETS];
    while (client && (client->pipe_id != pipe_id || !client->is_connected))
        client = client->next;
    return client;
}

bool clients_add(Clients *clients, uint32_t pipe_id, bool needs_token)
{
    Client *client = calloc(1, sizeof(Client));
    if (!client) return false;
    client->pipe_id = pipe_id;
    client->needs_token = needs_token;
    client->is_connected = true;
    client->waiting_end = &client->waiting;
    pthread_mutex_lock(&clients->mutex);
    Client **link = &clients->buckets[pipe_id % BUCKETS];
    bool is_added = clients->count < clients->count_max;
    if (is_added) {
        client->next = *link;
        *link = client;
        clients->count++;
    }
    pthread_mutex_unlock(&clients->mutex);
    if (!is_added) free(client);
    return is_added;
}

// Frees an entry that nothing refers to any more.
static void release(Clients *clients, Client *client)
{
    if (client->is_connected || client->running + client->refused + client->unsent > 0) return;
    Client **link = &clients->buckets[client->pipe_id % BUCKETS];
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    free(client);
}

static void disconnect(Clients *clients, Client *client)
{
    client->is_connected = false;
    clients->count--;
    release(clients, client);
}

void clients_remove(Clients *clients, uint32_t pipe_id)
{
    pthread_mutex_lock(&clients->mutex);
    Client *client = find(clients, pipe_id);
    if (client) disconnect(clients, client);
    pthread_mutex_unlock(&clients->mutex);
}

size_t clients_count(Clients *clients)
{
    pthread_mutex_lock(&clients->mutex);
    size_t count = clients->count;
    pthread_mutex_unlock(&clients->mutex);
    return count;
}

Client *clients_request(Clients *clients, uint32_t pipe_id, bool *out_may_run)
{
    pthread_mutex_lock(&clients->mutex);
    Client *client = find(clients, pipe_id);
    if (client) {
        *out_may_run = client->running < CLIENT_REQUESTS_MAX;
        if (*out_may_run) {
            client->running++;
        } else {
            client->refused++;
        }
    }
    pthread_mutex_unlock(&clients->mutex);
    return client;
}

TurnResult client_turn(Clients *clients, Client *client, ClientTurn *turn)
{
    TurnResult result = TURN_NOW;
    pthread_mutex_lock(&clients->mutex);
    if (client->unsent_bytes > CLIENT_UNSENT_BYTES_READY) {
        bool has_room = clients->waiting_bytes + turn->bytes <= WAITING_BYTES_MAX;
        result = has_room ? TURN_LATER : TURN_NEVER;
    }
    if (result == TURN_LATER) {
        clients->waiting_bytes += turn->bytes;
        turn->next = NULL;
        *client->waiting_end = turn;
        client->waiting_end = &turn->next;
    }
    pthread_mutex_unlock(&clients->mutex);
    return result;
}

// Lists the client if one of its requests may run. Later than at the next reply that is sent nobody
// needs to look: who waits, waits for one.
static void list_ready(Clients *clients, Client *client)
{
    if (!client->waiting || client->is_ready) return;
    if (client->is_connected && client->unsent_bytes > CLIENT_UNSENT_BYTES_READY) return;
    client->is_ready = true;
    client->next_ready = NULL;
    *clients->ready_end = client;
    clients->ready_end = &client->next_ready;
}

ClientTurn *clients_next(Clients *clients, bool *out_is_connected)
{
    ClientTurn *turn = NULL;
    pthread_mutex_lock(&clients->mutex);
    Client *client = clients->ready;
    if (client) {
        clients->ready = client->next_ready;
        if (!clients->ready) clients->ready_end = &clients->ready;
        client->is_ready = false;
        turn = client->waiting;
        client->waiting = turn->next;
        clients->waiting_bytes -= turn->bytes;
        if (!client->waiting) client->waiting_end = &client->waiting;
        *out_is_connected = client->is_connected;
        list_ready(clients, client); // behind the others
    }
    pthread_mutex_unlock(&clients->mutex);
    return turn;
}

bool client_needs_token(const Client *client)
{
    return client->needs_token;
}

bool client_answered(Clients *clients, Client *client, bool was_running, ClientReply *reply)
{
    pthread_mutex_lock(&clients->mutex);
    if (was_running) {
        client->running--;
    } else {
        client->refused--;
    }
    client->unsent++;
    client->unsent_bytes += reply->bytes;
    clients->unsent_bytes += reply->bytes;
    reply->client = client;
    reply->look = clients->look;
    reply->next = &clients->unsent;
    reply->previous = clients->unsent.previous;
    reply->next->previous = reply->previous->next = reply;
    // One reply may always wait: who reads one by one is not cut off for what others leave unread.
    bool is_fine = client->unsent == 1 || (client->unsent <= CLIENT_UNSENT_MAX &&
                                           client->unsent_bytes <= CLIENT_UNSENT_BYTES_MAX &&
                                           clients->unsent_bytes <= UNSENT_BYTES_MAX);
    pthread_mutex_unlock(&clients->mutex);
    return is_fine;
}

// Takes it out of the ring. The second time it does nothing.
static void unlink_reply(ClientReply *reply)
{
    reply->next->previous = reply->previous;
    reply->previous->next = reply->next;
    reply->next = reply->previous = reply;
}

bool client_sent(Clients *clients, ClientReply *reply, bool is_taken)
{
    pthread_mutex_lock(&clients->mutex);
    Client *client = reply->client;
    if (is_taken) client->taken++;
    client->unsent--;
    client->unsent_bytes -= reply->bytes;
    clients->unsent_bytes -= reply->bytes;
    unlink_reply(reply);
    list_ready(clients, client);
    release(clients, client);
    bool has_ready = clients->ready != NULL;
    pthread_mutex_unlock(&clients->mutex);
    return has_ready;
}

bool clients_look(Clients *clients)
{
    pthread_mutex_lock(&clients->mutex);
    clients->look++;
    bool has_unsent = clients->unsent.next != &clients->unsent;
    pthread_mutex_unlock(&clients->mutex);
    return has_unsent;
}

uint32_t clients_overdue(Clients *clients)
{
    uint32_t pipe_id = 0;
    pthread_mutex_lock(&clients->mutex);
    for (;;) {
        ClientReply *oldest = clients->unsent.next;
        if (oldest == &clients->unsent || clients->look - oldest->look <= UNSENT_LOOKS_MAX) break;
        Client *client = oldest->client;
        unlink_reply(oldest);
        if (!client->is_connected || client->is_cut_off) continue;
        client->is_cut_off = true;
        pipe_id = client->pipe_id;
        disconnect(clients, client);
        break;
    }
    pthread_mutex_unlock(&clients->mutex);
    return pipe_id;
}

uint64_t clients_taken(Clients *clients, uint32_t pipe_id)
{
    pthread_mutex_lock(&clients->mutex);
    const Client *client = find(clients, pipe_id);
    uint64_t taken = client ? client->taken : 0;
    pthread_mutex_unlock(&clients->mutex);
    return taken;
}

bool client_cut_off(Clients *clients, Client *client)
{
    pthread_mutex_lock(&clients->mutex);
    bool is_first = !client->is_cut_off;
    client->is_cut_off = true;
    pthread_mutex_unlock(&clients->mutex);
    return is_first;
}
