// The transport: the request machine and the listeners that use it: one of our own on the Unix
// socket, and NNG's on tcp if it is asked for.

#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "transport/listener_nng.h"
#include "transport/listener_sp.h"
#include "transport/request.h"

enum { LISTENER_TCP, LISTENER_LOCAL, LISTENER_COUNT };

struct Transport {
    Requests *requests;                  // owned
    Listener *listeners[LISTENER_COUNT]; // owned; NULL: there is none
};

// Checks that two descriptors are left: one for a client, and one for what the daemon opens for a
// moment. Without them every client would be turned away.
static Error check_room_for_client(ErrorDetail *detail)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_say(detail, ERROR_IO, "cannot serve a client: %s", strerror(errno));
    }
    close(ends[0]);
    close(ends[1]);
    return ERROR_NONE;
}

static Error start_listeners(Transport *transport, const TransportOptions *options,
                             ErrorDetail *detail)
{
    size_t clients_max = options->clients_max ? options->clients_max : CLIENTS_MAX;
    ListenerNngOptions nng = {transport->requests, options->tcp_url, options->tcp_token,
                              clients_max};
    ListenerSpOptions sp = {transport->requests, options->socket_path, clients_max};
    Error error = ERROR_NONE;
    if (options->tcp_url) {
        error = listener_nng_start(&nng, detail, &transport->listeners[LISTENER_TCP]);
    }
    if (!error) error = listener_sp_start(&sp, detail, &transport->listeners[LISTENER_LOCAL]);
    return error;
}

Error transport_start(const TransportOptions *options, ErrorDetail *detail, Transport **out)
{
    Transport *transport = calloc(1, sizeof(Transport));
    if (!transport) return ERROR_OUT_OF_MEMORY;
    Error error = requests_open(options->engine, detail, &transport->requests);
    if (!error) error = start_listeners(transport, options, detail);
    if (!error) error = check_room_for_client(detail);
    if (error) {
        if (transport->requests) transport_close(transport);
        transport_free(transport);
        return error;
    }
    *out = transport;
    return ERROR_NONE;
}

void transport_stop_intake(Transport *transport)
{
    requests_refuse(transport->requests);
}

bool transport_drain(Transport *transport, int64_t until_ns)
{
    bool is_drained = requests_drain(transport->requests, until_ns);
    for (size_t i = 0; is_drained && i < LISTENER_COUNT; i++) {
        Listener *listener = transport->listeners[i];
        if (listener && listener->ops->drain) is_drained = listener->ops->drain(listener, until_ns);
    }
    return is_drained;
}

void transport_close(Transport *transport)
{
    requests_stop(transport->requests);
    for (size_t i = 0; i < LISTENER_COUNT; i++) {
        Listener *listener = transport->listeners[i];
        if (listener) listener->ops->close(listener);
    }
}

void transport_free(Transport *transport)
{
    if (!transport) return;
    for (size_t i = 0; i < LISTENER_COUNT; i++) {
        Listener *listener = transport->listeners[i];
        if (listener) listener->ops->free(listener);
    }
    requests_close(transport->requests);
    free(transport);
}

void transport_stats(Transport *transport, TransportStats *out)
{
    *out = (TransportStats){.requests = requests_count(transport->requests)};
    for (size_t i = 0; i < LISTENER_COUNT; i++) {
        if (transport->listeners[i]) out->clients += requests_connections(transport->listeners[i]);
    }
}

bool transport_trim(Transport *transport)
{
    return requests_trim(transport->requests);
}
