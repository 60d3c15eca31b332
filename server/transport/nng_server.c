// The transport on NNG: a REP socket that listens on ipc and, if asked, on tcp.
//
// NNG 1.10.1 and 1.11 bear what is done here: connections closed by the server while requests are
// pipelined, clients that hang up in the middle of anything. Their like before and after do not
// (nng.cmake refuses them).

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "transport/context.h"
#include "transport/linger.h"
#include "transport/nng_setup.h"
#include "transport/transport.h"

struct Transport {
    nng_socket socket;
    bool is_open;
    nng_listener ipc, tcp;
    Clients *clients;   // owned
    Contexts *contexts; // owned
    atomic_bool is_refusing;
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument);
static Error listen_on(Transport *transport, const TransportOptions *options, ErrorDetail *detail);

Error transport_start(const TransportOptions *options, ErrorDetail *detail, Transport **out)
{
    Transport *transport = calloc(1, sizeof(Transport));
    if (!transport) return ERROR_OUT_OF_MEMORY;
    nng_setup();
    Error error = clients_open(options->clients_max ? options->clients_max : CLIENTS_MAX,
                               &transport->clients);
    int failed = error ? 0 : nng_rep0_open(&transport->socket);
    transport->is_open = !error && !failed;
    if (failed) error = nng_say(detail, "cannot open a socket", failed);
    if (!error) error = listen_on(transport, options, detail);
    if (!error) {
        ContextsOptions contexts_options = {
            .socket = transport->socket,
            .engine = options->engine,
            .clients = transport->clients,
            .token = options->tcp_token,
        };
        error = contexts_start(&contexts_options, &transport->contexts);
    }
    if (error) {
        transport_close(transport);
        transport_free(transport);
        return error;
    }
    *out = transport;
    return ERROR_NONE;
}

static Error listen_on(Transport *transport, const TransportOptions *options, ErrorDetail *detail)
{
    int failed = 0;
    const nng_pipe_ev events[] = {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_REM_POST};
    for (size_t i = 0; !failed && i < 2; i++) {
        failed = nng_pipe_notify(transport->socket, events[i], on_pipe, transport);
    }
    if (failed) return nng_say(detail, "cannot watch connections", failed);

    size_t frame_bytes_max = (size_t)REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES;
    Error error = nng_listen_ipc(transport->socket, options->socket_path, frame_bytes_max, detail,
                                 &transport->ipc);
    if (error || !options->tcp_url) return error;

    failed = nng_listener_create(&transport->tcp, transport->socket, options->tcp_url);
    if (!failed) failed = nng_listener_set_size(transport->tcp, NNG_OPT_RECVMAXSZ, frame_bytes_max);
    if (!failed) failed = nng_listener_start(transport->tcp, 0);
    return failed ? nng_say(detail, options->tcp_url, failed) : ERROR_NONE;
}

// NNG is not called from here but for the pipe that it is about: the socket's locks are held.
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    Transport *transport = argument;
    uint32_t pipe_id = (uint32_t)nng_pipe_id(pipe);
    if (event == NNG_PIPE_EV_REM_POST) {
        clients_remove(transport->clients, pipe_id);
        return;
    }
    bool is_local = nng_listener_id(nng_pipe_listener(pipe)) == nng_listener_id(transport->ipc);
    if (atomic_load(&transport->is_refusing) || (is_local && !nng_peer_is_allowed(pipe)) ||
        !clients_add(transport->clients, pipe_id, /* needs_token= */ !is_local)) {
        (void)nng_pipe_close(pipe);
    }
}

void transport_stop_intake(Transport *transport)
{
    atomic_store(&transport->is_refusing, true);
    contexts_refuse(transport->contexts);
}

bool transport_drain(Transport *transport, int64_t until_ns)
{
    return contexts_drain(transport->contexts, until_ns) && linger(transport->clients, until_ns);
}

void transport_close(Transport *transport)
{
    if (transport->contexts) contexts_stop(transport->contexts);
    if (transport->is_open) (void)nng_close(transport->socket);
    transport->is_open = false;
}

void transport_free(Transport *transport)
{
    if (!transport) return;
    contexts_free(transport->contexts);
    clients_close(transport->clients);
    free(transport);
}

void transport_stats(Transport *transport, TransportStats *out)
{
    out->clients = clients_count(transport->clients);
    out->requests = contexts_request_count(transport->contexts);
}

void transport_trim(Transport *transport)
{
    contexts_trim(transport->contexts);
}
