// The listener on NNG: a REP socket on tcp.
//
// NNG 1.10.1 and 1.11 bear what is done here: connections closed by the server while requests are
// pipelined, clients that hang up in the middle of anything. Their like before and after do not
// (nng.cmake refuses them).

#include "transport/nng_server.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "report/log.h"
#include "transport/context.h"
#include "transport/linger.h"
#include "transport/nng_setup.h"

struct NngServer {
    nng_socket socket;
    bool is_open;
    nng_listener listener;
    Clients *clients;   // owned
    Contexts *contexts; // owned
    atomic_bool is_refusing;
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument);
static Error listen_on(NngServer *server, const NngServerOptions *options, ErrorDetail *detail);

Error nng_server_start(const NngServerOptions *options, ErrorDetail *detail, NngServer **out)
{
    NngServer *server = calloc(1, sizeof(NngServer));
    if (!server) return ERROR_OUT_OF_MEMORY;
    nng_setup();
    Error error = clients_open(options->clients_max, &server->clients);
    int failed = error ? 0 : nng_rep0_open(&server->socket);
    server->is_open = !error && !failed;
    if (failed) error = nng_say(detail, "cannot open a socket", failed);
    if (!error) error = listen_on(server, options, detail);
    if (!error) {
        ContextsOptions contexts_options = {
            .socket = server->socket,
            .engine = options->engine,
            .clients = server->clients,
            .token = options->token,
        };
        error = contexts_start(&contexts_options, &server->contexts);
    }
    if (error) {
        nng_server_close(server);
        nng_server_free(server);
        return error;
    }
    *out = server;
    return ERROR_NONE;
}

static Error listen_on(NngServer *server, const NngServerOptions *options, ErrorDetail *detail)
{
    int failed = 0;
    const nng_pipe_ev events[] = {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_REM_POST};
    for (size_t i = 0; !failed && i < 2; i++) {
        failed = nng_pipe_notify(server->socket, events[i], on_pipe, server);
    }
    if (failed) return nng_say(detail, "cannot watch connections", failed);

    size_t frame_bytes_max = (size_t)REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES;
    failed = nng_listener_create(&server->listener, server->socket, options->url);
    if (!failed) {
        failed = nng_listener_set_size(server->listener, NNG_OPT_RECVMAXSZ, frame_bytes_max);
    }
    if (!failed) failed = nng_listener_start(server->listener, 0);
    return failed ? nng_say(detail, options->url, failed) : ERROR_NONE;
}

// NNG is not called from here but for the pipe that it is about: the socket's locks are held.
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    NngServer *server = argument;
    uint32_t pipe_id = (uint32_t)nng_pipe_id(pipe);
    if (event == NNG_PIPE_EV_REM_POST) {
        clients_remove(server->clients, pipe_id);
        return;
    }
    if (atomic_load(&server->is_refusing) ||
        !clients_add(server->clients, pipe_id, /* needs_token= */ true)) {
        (void)nng_pipe_close(pipe);
    }
}

void nng_server_stop_intake(NngServer *server)
{
    atomic_store(&server->is_refusing, true);
    contexts_refuse(server->contexts);
}

bool nng_server_drain(NngServer *server, int64_t until_ns)
{
    return contexts_drain(server->contexts, until_ns) && linger(server->clients, until_ns);
}

void nng_server_close(NngServer *server)
{
    if (server->contexts) contexts_stop(server->contexts);
    if (server->is_open) (void)nng_close(server->socket);
    server->is_open = false;
}

void nng_server_free(NngServer *server)
{
    if (!server) return;
    contexts_free(server->contexts);
    clients_close(server->clients);
    free(server);
}

size_t nng_server_clients(NngServer *server)
{
    return clients_count(server->clients);
}

uint64_t nng_server_requests(NngServer *server)
{
    return contexts_request_count(server->contexts);
}

void nng_server_trim(NngServer *server)
{
    contexts_trim(server->contexts);
}
