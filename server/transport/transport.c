// The transport: a listener of our own on the Unix socket, and NNG's on tcp if it is asked for.

#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "transport/nng_server.h"
#include "transport/sp_server.h"

struct Transport {
    SpServer *local;
    NngServer *tcp; // NULL: there is none
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

Error transport_start(const TransportOptions *options, ErrorDetail *detail, Transport **out)
{
    Transport *transport = calloc(1, sizeof(Transport));
    if (!transport) return ERROR_OUT_OF_MEMORY;
    size_t clients_max = options->clients_max ? options->clients_max : CLIENTS_MAX;
    SpServerOptions local = {options->engine, options->socket_path, clients_max};
    Error error = sp_server_start(&local, detail, &transport->local);
    if (!error && options->tcp_url) {
        NngServerOptions tcp = {options->engine, options->tcp_url, options->tcp_token, clients_max};
        error = nng_server_start(&tcp, detail, &transport->tcp);
    }
    if (!error) error = check_room_for_client(detail);
    if (error) {
        if (transport->local) transport_close(transport);
        transport_free(transport);
        return error;
    }
    *out = transport;
    return ERROR_NONE;
}

void transport_stop_intake(Transport *transport)
{
    sp_server_stop_intake(transport->local);
    if (transport->tcp) nng_server_stop_intake(transport->tcp);
}

bool transport_drain(Transport *transport, int64_t until_ns)
{
    bool is_drained = sp_server_drain(transport->local, until_ns);
    return (!transport->tcp || nng_server_drain(transport->tcp, until_ns)) && is_drained;
}

void transport_close(Transport *transport)
{
    sp_server_close(transport->local);
    if (transport->tcp) nng_server_close(transport->tcp);
}

void transport_free(Transport *transport)
{
    if (!transport) return;
    sp_server_free(transport->local);
    nng_server_free(transport->tcp);
    free(transport);
}

void transport_stats(Transport *transport, TransportStats *out)
{
    *out =
        (TransportStats){sp_server_clients(transport->local), sp_server_requests(transport->local)};
    if (!transport->tcp) return;
    out->clients += nng_server_clients(transport->tcp);
    out->requests += nng_server_requests(transport->tcp);
}

void transport_trim(Transport *transport)
{
    sp_server_trim(transport->local);
    if (transport->tcp) nng_server_trim(transport->tcp);
}
