// A REP socket of NNG's, and its contexts: a context receives one request, holds it while it runs,
// and sends its reply.
//
// CONTEXTS_READY contexts receive at any time. A request keeps its context until its reply is sent,
// whether it waits for news, for the writer, or for a peer that does not read. Another context is
// opened in its place, up to CONTEXTS_MAX, and closed when enough others receive again.
//
// A context is in one of three states: it receives, it is in hand (of the request machine), or it
// sends. The state changes in callbacks of NNG and in the functions that the machine calls. Whoever
// changes it must not touch the context afterwards: the next state may have begun, or ended, on
// another thread.
//
// No thread may be inside a call of NNG about a context when the socket is closed: NNG frees a
// context that was closed meanwhile after it has told the closing thread that all are gone. So each
// thread enters and leaves (`inside`), and close waits until none is inside. A thread that runs
// requests for a context counts as inside too: the engine is closed after the socket.
//
// No operation has a timeout of NNG's. A timeout does not see that its operation has ended
// meanwhile; it then meets a closed context, or the next operation. A reply that is not taken ends
// when the request machine cuts off its peer.
//
// NNG 1.10.1 and 1.11 bear what is done here: connections that the server closes while requests are
// pipelined, and peers that hang up in the middle of anything. The versions before and after do not
// (nng.cmake refuses them).

#include "transport/listener_nng.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/thread.h"
#include "transport/nng_setup.h"
#include "transport/request.h"

enum {
    // Of ListenerNng.inside. Stopped: no thread enters any more, and the list stays as it is.
    INSIDE_STOPPED = 1,
    INSIDE_ONE = 2,
    DRAIN_LOOK_MS = 2,
};

typedef struct Context Context;

typedef struct ListenerNng {
    Listener listener; // the first
    nng_socket socket;
    bool is_open;
    atomic_size_t inside; // threads that call NNG, each counts INSIDE_ONE; and INSIDE_STOPPED

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t left;
    bool is_left; // stopped, and no thread is inside any more
    Context *all;
    size_t count, receiving_count;
} ListenerNng;

struct Context {
    ListenerNng *server;
    nng_ctx ctx;
    nng_aio *receive, *send; // owned
    Context *next, *previous;
    nng_msg *message;     // owned; the request in hand borrows from it
    PeerRequest *request; // whose reply is being sent
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument);
static Error listen_on(ListenerNng *server, const char *url, ErrorDetail *detail);
static Context *context_open(ListenerNng *server);
static void context_receive(Context *context);
static void on_received(void *argument);
static void on_sent(void *argument);
static SendResult send_reply(PeerRequest *request);
static void drop_request(PeerRequest *request);
static void cut_off(Account *account);
static bool drain(Listener *listener, int64_t until_ns);
static void close_listener(Listener *listener);
static void free_listener(Listener *listener);

static const ListenerOps OPS = {
    .send = send_reply,
    .drop = drop_request,
    .cut_off = cut_off,
    .drain = drain,
    .close = close_listener,
    .free = free_listener,
};

Error listener_nng_start(const ListenerNngOptions *options, ErrorDetail *detail, Listener **out)
{
    ListenerNng *server = calloc(1, sizeof(ListenerNng));
    if (!server) return ERROR_OUT_OF_MEMORY;
    server->listener = (Listener){
        .group = {.count_max = options->clients_max},
        .ops = &OPS,
        .requests = options->requests,
        .token_wanted = options->token,
    };
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->left, NULL);
    nng_setup();
    int failed = nng_rep0_open(&server->socket);
    server->is_open = !failed;
    Error error = failed ? nng_say(detail, "cannot open a socket", failed) : ERROR_NONE;
    for (size_t i = 0; !error && i < CONTEXTS_READY; i++) {
        Context *context = context_open(server);
        if (context) context_receive(context);
        if (!context) error = ERROR_OUT_OF_MEMORY;
    }
    if (!error) error = listen_on(server, options->url, detail);
    if (error) {
        close_listener(&server->listener);
        free_listener(&server->listener);
        return error;
    }
    *out = &server->listener;
    return ERROR_NONE;
}

static Error listen_on(ListenerNng *server, const char *url, ErrorDetail *detail)
{
    int failed = 0;
    const nng_pipe_ev events[] = {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_REM_POST};
    for (size_t i = 0; !failed && i < 2; i++) {
        failed = nng_pipe_notify(server->socket, events[i], on_pipe, server);
    }
    if (failed) return nng_say(detail, "cannot watch connections", failed);

    nng_listener listener;
    size_t frame_bytes_max = (size_t)REQUEST_BYTES_MAX + FRAME_EXTRA_BYTES;
    failed = nng_listener_create(&listener, server->socket, url);
    if (!failed) failed = nng_listener_set_size(listener, NNG_OPT_RECVMAXSZ, frame_bytes_max);
    if (!failed) failed = nng_listener_start(listener, 0);
    return failed ? nng_say(detail, url, failed) : ERROR_NONE;
}

// NNG holds locks of the socket here, so it may be called about this pipe only.
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    ListenerNng *server = argument;
    uint32_t pipe_id = (uint32_t)nng_pipe_id(pipe);
    if (event == NNG_PIPE_EV_REM_POST) {
        requests_disconnect(&server->listener, pipe_id);
    } else if (!requests_connect(&server->listener, pipe_id, NULL)) {
        (void)nng_pipe_close(pipe);
    }
}

// Must surround each call of NNG about a context. Returns false if the call must not be made.
static bool enter(ListenerNng *server)
{
    size_t inside = atomic_load(&server->inside);
    while (!(inside & INSIDE_STOPPED)) {
        if (atomic_compare_exchange_weak(&server->inside, &inside, inside + INSIDE_ONE)) {
            return true;
        }
    }
    return false;
}

// Once the last thread has left after the stop, all may be freed at any moment. So this is told
// under the mutex, and nothing is touched afterwards.
static void leave(ListenerNng *server)
{
    size_t before = atomic_fetch_sub(&server->inside, INSIDE_ONE);
    if (before != (INSIDE_ONE | INSIDE_STOPPED)) return;
    pthread_mutex_lock(&server->mutex);
    server->is_left = true;
    pthread_cond_broadcast(&server->left);
    pthread_mutex_unlock(&server->mutex);
}

static void close_listener(Listener *listener)
{
    ListenerNng *server = (ListenerNng *)listener;
    pthread_mutex_lock(&server->mutex);
    if (atomic_fetch_or(&server->inside, INSIDE_STOPPED) == 0) server->is_left = true;
    while (!server->is_left)
        pthread_cond_wait(&server->left, &server->mutex);
    pthread_mutex_unlock(&server->mutex);
    if (server->is_open) (void)nng_close(server->socket);
    server->is_open = false;
}

static void context_free(Context *context)
{
    if (context->message) nng_msg_free(context->message);
    free(context);
}

static void free_listener(Listener *listener)
{
    ListenerNng *server = (ListenerNng *)listener;
    while (server->all) {
        Context *context = server->all;
        server->all = context->next;
        nng_aio_free(context->receive); // waits for its callback
        nng_aio_free(context->send);
        context_free(context);
    }
    pthread_cond_destroy(&server->left);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

// Returns false if no more contexts are listed.
static bool context_list(Context *context)
{
    ListenerNng *server = context->server;
    pthread_mutex_lock(&server->mutex);
    bool is_listed = !(atomic_load(&server->inside) & INSIDE_STOPPED);
    if (is_listed) {
        context->next = server->all;
        if (context->next) context->next->previous = context;
        server->all = context;
        server->count++;
        server->receiving_count++;
    }
    pthread_mutex_unlock(&server->mutex);
    return is_listed;
}

// Opens a context and lists it as receiving. Returns NULL: no memory, or the socket is closed.
static Context *context_open(ListenerNng *server)
{
    Context *context = calloc(1, sizeof(Context));
    if (!context) return NULL;
    context->server = server;
    int failed = nng_aio_alloc(&context->receive, on_received, context);
    if (!failed) failed = nng_aio_alloc(&context->send, on_sent, context);
    if (!failed && enter(server)) {
        bool is_open = nng_ctx_open(&context->ctx, server->socket) == 0;
        bool is_listed = is_open && context_list(context);
        if (is_open && !is_listed) nng_ctx_close(context->ctx);
        leave(server);
        if (is_listed) {
            nng_aio_set_timeout(context->receive, NNG_DURATION_INFINITE);
            nng_aio_set_timeout(context->send, NNG_DURATION_INFINITE);
            return context;
        }
    }
    nng_aio_free(context->send);
    nng_aio_free(context->receive);
    free(context);
    return NULL;
}

// Starts to receive. The context is counted as receiving already.
static void context_receive(Context *context)
{
    ListenerNng *server = context->server;
    if (!enter(server)) return;
    nng_ctx_recv(context->ctx, context->receive);
    leave(server);
}

static void context_unlist(Context *context)
{
    ListenerNng *server = context->server;
    pthread_mutex_lock(&server->mutex);
    if (context->next) context->next->previous = context->previous;
    if (context->previous) context->previous->next = context->next;
    if (server->all == context) server->all = context->next;
    server->count--;
    pthread_mutex_unlock(&server->mutex);
}

// Closes a context that does nothing, maybe in a callback of its own. Its thread stays inside until
// the context is gone: nobody else waits for a context that is not listed.
static void context_close(Context *context)
{
    ListenerNng *server = context->server;
    if (!enter(server)) return; // it is freed with the others
    context_unlist(context);
    nng_ctx_close(context->ctx);
    nng_aio_reap(context->receive);
    nng_aio_reap(context->send);
    context_free(context);
    leave(server);
}

// Its request has ended: the context receives again, or closes if enough others receive.
static void context_reuse(Context *context)
{
    ListenerNng *server = context->server;
    if (context->message) nng_msg_free(context->message);
    context->message = NULL;
    pthread_mutex_lock(&server->mutex);
    bool is_needed = server->receiving_count < CONTEXTS_READY;
    if (is_needed) server->receiving_count++;
    pthread_mutex_unlock(&server->mutex);
    if (is_needed) {
        context_receive(context);
    } else {
        context_close(context);
    }
}

// A context has received. Opens another if too few receive; if that fails, there is one fewer until
// others are done.
static void replace_receiver(ListenerNng *server)
{
    pthread_mutex_lock(&server->mutex);
    server->receiving_count--;
    bool is_short = server->receiving_count < CONTEXTS_READY / 2 && server->count < CONTEXTS_MAX;
    pthread_mutex_unlock(&server->mutex);
    Context *another = is_short ? context_open(server) : NULL;
    if (another) context_receive(another);
}

static void pipe_close(uint32_t pipe_id)
{
    (void)nng_pipe_close((nng_pipe){.id = pipe_id});
}

static void receive(Context *context)
{
    ListenerNng *server = context->server;
    nng_msg *message = nng_aio_get_msg(context->receive);
    uint32_t pipe_id = (uint32_t)nng_pipe_id(nng_msg_get_pipe(message));
    context->message = message;
    replace_receiver(server);
    PeerRequest *request = request_take(&server->listener, pipe_id, /* frame_bytes= */ 0);
    if (!request) {
        pipe_close(pipe_id);
        context_reuse(context);
        return;
    }
    request->context = context;
    thread_unblock_crashes(); // NNG's threads block every signal
    request_begin(request, slice(nng_msg_body(message), nng_msg_len(message)));
}

static void on_received(void *argument)
{
    Context *context = argument;
    ListenerNng *server = context->server;
    int failed = nng_aio_result(context->receive);
    if (failed == NNG_ECLOSED || failed == NNG_ECANCELED) return; // the socket closes
    if (!enter(server)) {
        if (!failed) context->message = nng_aio_get_msg(context->receive); // freed with the context
        return;
    }
    if (failed) {
        context_receive(context);
    } else {
        receive(context);
    }
    leave(server);
}

// Returns NULL if there is no memory.
static nng_msg *message_of(Slice bytes)
{
    nng_msg *message;
    if (nng_msg_alloc(&message, bytes.size) != 0) return NULL;
    memcpy(nng_msg_body(message), bytes.bytes, bytes.size);
    return message;
}

static SendResult send_reply(PeerRequest *request)
{
    Context *context = request->context;
    ListenerNng *server = context->server;
    if (!enter(server)) return SEND_GONE;
    SendResult result = SEND_LATER;
    nng_msg *reply = message_of(request_reply(request));
    if (reply) {
        nng_msg_free(context->message);
        context->message = NULL;
        request_reply_copied(request);
        context->request = request;
        nng_aio_set_msg(context->send, reply);
        nng_ctx_send(context->ctx, context->send);
    } else {
        result = SEND_GONE;
        pipe_close(request->entry.account->connection_id);
        context_reuse(context);
    }
    leave(server);
    return result;
}

// Runs requests whose turn comes with this, so the thread stays inside. If it could not enter, the
// machine has stopped and runs none.
static void on_sent(void *argument)
{
    Context *context = argument;
    ListenerNng *server = context->server;
    PeerRequest *request = context->request;
    int failed = nng_aio_result(context->send);
    bool is_inside = enter(server);
    if (failed) {
        nng_msg_free(nng_aio_get_msg(context->send));
        nng_aio_set_msg(context->send, NULL);
    }
    if (is_inside && failed && failed != NNG_ECLOSED && failed != NNG_ECANCELED) {
        pipe_close(request->entry.account->connection_id); // no memory: its reply will never come
    }
    request_sent(request, /* is_taken= */ !failed);
    if (!is_inside) return;
    context_reuse(context);
    leave(server);
}

static void drop_request(PeerRequest *request)
{
    Context *context = request->context;
    ListenerNng *server = context->server;
    if (!enter(server)) return;
    context_reuse(context);
    leave(server);
}

static void cut_off(Account *account)
{
    ListenerNng *server = (ListenerNng *)account->group;
    if (!enter(server)) return;
    pipe_close(account->connection_id);
    leave(server);
}

static uint64_t value_of(nng_stat *pipe, const char *name)
{
    nng_stat *found = nng_stat_find(pipe, name);
    return found ? nng_stat_value(found) : 0;
}

// Returns whether all replies that connections took are written to their end. NNG's statistics
// count what was written; an NNG that was built without them is not waited for.
static bool is_all_written(ListenerNng *server)
{
    nng_stat *root;
    if (nng_stats_get(&root) != 0) return true;
    bool is_all = true;
    for (nng_stat *stat = nng_stat_child(root); is_all && stat; stat = nng_stat_next(stat)) {
        if (strcmp(nng_stat_name(stat), "pipe") != 0) continue;
        uint32_t pipe_id = (uint32_t)value_of(stat, "id");
        is_all = value_of(stat, "tx_msgs") >= requests_taken(&server->listener, pipe_id);
    }
    nng_stats_free(root);
    return is_all;
}

// NNG reports a reply as sent when its connection has taken it. The rest of a long one may still
// wait in this process for a peer that reads slowly, and closing the socket would cut it off.
static bool drain(Listener *listener, int64_t until_ns)
{
    ListenerNng *server = (ListenerNng *)listener;
    while (!is_all_written(server)) {
        if (clock_monotonic_ns() >= until_ns) return false;
        (void)poll(NULL, 0, DRAIN_LOOK_MS);
    }
    return true;
}
