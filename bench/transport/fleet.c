// Fleets.

#include "fleet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aged.h"
#include "calls.h"
#include "os/clock.h"
#include "sp_dial.h"
#include "sp_frame.h"
#include "wire/envelope.h"

enum { DRIVERS = 4, DRIVER_CLIENTS = WRITERS / DRIVERS };

typedef struct FleetClient {
    Fleet *fleet;
    pthread_t thread; // of the libtine kind
    Tine *tine;
    AppendMessageRequest *append;
    int fd; // of the light kind
    SpReader reader;
    Buffer request;
    size_t left;
} FleetClient;

struct Fleet {
    size_t count; // of the run
    FleetClient clients[WRITERS];
};

Fleet *fleet_open(const Peer *tined, const IdText *sessions)
{
    Fleet *fleet = calloc(1, sizeof(Fleet));
    require(fleet != NULL, "out of memory");
    for (size_t i = 0; i < WRITERS; i++) {
        FleetClient *client = &fleet->clients[i];
        Buffer request = append_request(sessions[i].text, APPEND_TEXT_BYTES);
        client->fleet = fleet;
        client->append = append_message_of(&request);
        client->request = request_with_operation_id(&request);
        buffer_free(&request);
        client->tine = tine_of(tined, "ipc");
        char why[SP_WHY_BYTES];
        client->fd = sp_dial(tined->socket, INT64_MAX, why);
        require(client->fd >= 0, "%s: %s", tined->socket, why);
    }
    return fleet;
}

void fleet_close(Fleet *fleet)
{
    for (size_t i = 0; i < WRITERS; i++) {
        FleetClient *client = &fleet->clients[i];
        close(client->fd);
        sp_reader_free(&client->reader);
        tine_close(client->tine);
        buffer_free(&client->request);
        protobuf_c_message_free_unpacked(&client->append->base, NULL);
    }
    free(fleet);
}

static void client_send(FleetClient *client)
{
    SpFrame frame;
    request_renew_operation_id(&client->request);
    sp_frame_begin(&frame, SP_ID_LAST | 1, buffer_slice(&client->request));
    require(sp_frame_send(&frame, client->fd) == SP_DONE, "a request does not fit the socket");
}

// What has come. False: the reply is not whole yet.
static bool client_receive(FleetClient *client)
{
    size_t room;
    uint8_t *bytes = sp_reader_room(&client->reader, &room);
    ssize_t size = recv(client->fd, bytes, room, 0);
    require(size > 0, "tined hung up");
    sp_reader_took(&client->reader, (size_t)size);
    uint32_t id;
    Buffer body;
    const char *why;
    if (sp_reader_next(&client->reader, &id, &body, &why) != SP_DONE) return false;
    ResponseStatus status;
    Slice content;
    require(envelope_response_read(buffer_slice(&body), &status, &content) && !status.code,
            "an append failed");
    buffer_free(&body);
    return true;
}

static void *drive(void *context)
{
    FleetClient *clients = context;
    struct pollfd wanted[DRIVER_CLIENTS];
    size_t in_flight = DRIVER_CLIENTS;
    for (size_t i = 0; i < DRIVER_CLIENTS; i++) {
        clients[i].left = clients[i].fleet->count - 1;
        wanted[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
        client_send(&clients[i]);
    }
    while (in_flight > 0) {
        if (poll(wanted, DRIVER_CLIENTS, -1) < 0) continue;
        for (size_t i = 0; i < DRIVER_CLIENTS; i++) {
            if (!wanted[i].revents || !client_receive(&clients[i])) continue;
            if (clients[i].left == 0) {
                wanted[i].fd = -1;
                in_flight--;
                continue;
            }
            clients[i].left--;
            client_send(&clients[i]);
        }
    }
    return NULL;
}

double fleet_run_light(Fleet *fleet, size_t count)
{
    pthread_t threads[DRIVERS];
    fleet->count = count;
    int64_t t0 = clock_monotonic_ns();
    for (size_t i = 0; i < DRIVERS; i++) {
        FleetClient *first = &fleet->clients[i * DRIVER_CLIENTS];
        require(pthread_create(&threads[i], NULL, drive, first) == 0, "no thread");
    }
    for (size_t i = 0; i < DRIVERS; i++)
        pthread_join(threads[i], NULL);
    return (double)(WRITERS * count) * 1e9 / (double)(clock_monotonic_ns() - t0);
}

static void *append_all(void *context)
{
    FleetClient *client = context;
    for (size_t i = 0; i < client->fleet->count; i++)
        append_by_libtine(client->tine, client->append, NULL);
    return NULL;
}

double fleet_run_libtine(Fleet *fleet, size_t count)
{
    fleet->count = count;
    int64_t t0 = clock_monotonic_ns();
    for (size_t i = 0; i < WRITERS; i++) {
        FleetClient *client = &fleet->clients[i];
        require(pthread_create(&client->thread, NULL, append_all, client) == 0, "no thread");
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(fleet->clients[i].thread, NULL);
    return (double)(WRITERS * count) * 1e9 / (double)(clock_monotonic_ns() - t0);
}
