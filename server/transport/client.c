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
    Client *next; // in its bucket
};

struct Clients {
    size_t count_max;
    pthread_mutex_t mutex; // guards all below, and what the entries count
    size_t count;
    size_t unsent_bytes; // of all
    Client *buckets[BUCKETS];
};

Error clients_open(size_t count_max, Clients **out)
{
    Clients *clients = calloc(1, sizeof(Clients));
    if (!clients) return ERROR_OUT_OF_MEMORY;
    clients->count_max = count_max;
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

static Client **link_of(Clients *clients, uint32_t pipe_id)
{
    Client **link = &clients->buckets[pipe_id % BUCKETS];
    while (*link && (*link)->pipe_id != pipe_id) link = &(*link)->next;
    return link;
}

bool clients_add(Clients *clients, uint32_t pipe_id, bool needs_token)
{
    Client *client = calloc(1, sizeof(Client));
    if (!client) return false;
    client->pipe_id = pipe_id;
    client->needs_token = needs_token;
    client->is_connected = true;
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

// Frees an entry that nothing refers to any more. Those of connections that are gone are in no
// bucket.
static void release(Client *client)
{
    if (client->is_connected || client->running + client->refused + client->unsent > 0) return;
    free(client);
}

void clients_remove(Clients *clients, uint32_t pipe_id)
{
    pthread_mutex_lock(&clients->mutex);
    Client **link = link_of(clients, pipe_id);
    Client *client = *link;
    if (client) {
        *link = client->next;
        client->is_connected = false;
        clients->count--;
        release(client);
    }
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
    Client *client = *link_of(clients, pipe_id);
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

bool client_needs_token(const Client *client)
{
    return client->needs_token;
}

bool client_answered(Clients *clients, Client *client, bool was_running, size_t reply_bytes)
{
    pthread_mutex_lock(&clients->mutex);
    if (was_running) {
        client->running--;
    } else {
        client->refused--;
    }
    client->unsent++;
    client->unsent_bytes += reply_bytes;
    clients->unsent_bytes += reply_bytes;
    // One reply may always wait: who reads one by one is not cut off for what others leave unread.
    bool is_fine = client->unsent == 1 || (client->unsent <= CLIENT_UNSENT_MAX &&
                                           client->unsent_bytes <= CLIENT_UNSENT_BYTES_MAX &&
                                           clients->unsent_bytes <= UNSENT_BYTES_MAX);
    pthread_mutex_unlock(&clients->mutex);
    return is_fine;
}

void client_sent(Clients *clients, Client *client, size_t reply_bytes, bool is_taken)
{
    pthread_mutex_lock(&clients->mutex);
    if (is_taken) client->taken++;
    client->unsent--;
    client->unsent_bytes -= reply_bytes;
    clients->unsent_bytes -= reply_bytes;
    release(client);
    pthread_mutex_unlock(&clients->mutex);
}

uint64_t clients_taken(Clients *clients, uint32_t pipe_id)
{
    pthread_mutex_lock(&clients->mutex);
    const Client *client = *link_of(clients, pipe_id);
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
