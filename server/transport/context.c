// Contexts. Each is a machine of three states: it receives (a receive is pending on it), it is in
// hand (its request waits for its turn, or its call runs, is queued or waits), it sends. The state
// changes in callbacks of NNG and in the call's on_done; whoever causes a change touches the
// context no more, for the next state may already have begun, or ended, on another thread.
//
// No context may be inside a call of NNG's when the socket is closed: NNG frees a context that was
// closed meanwhile after it has told the closing thread that all are gone.
//
// Neither operation has a timeout of NNG's: what ends one by its time does not see that it has
// ended meanwhile, and meets a context that is closed, or the next operation on it. So replies that
// are not taken are looked at now and then, for as long as there are any, and a connection that
// leaves one for too long is closed, which ends them the ordinary way.

#include "transport/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "report/log.h"
#include "rpc/dispatch.h"
#include "rpc/engine.h"

// Of Contexts.inside. Stopped: nobody enters any more, and the list stays as it is.
enum { INSIDE_STOPPED = 1, INSIDE_ONE = 2 };

typedef struct Context Context;

struct Context {
    ClientTurn turn; // the first: what comes from clients_next is its context
    Contexts *contexts;
    nng_ctx ctx;
    nng_aio *receive, *send; // owned
    Context *next, *previous;

    // Of the request in hand.
    nng_msg *request; // owned; the call borrows from it
    nng_pipe pipe;
    Client *client;
    bool may_run;
    bool is_accepted; // counted in accepted_count
    ClientReply reply;
    Rpc *rpc; // owned
};

struct Contexts {
    ContextsOptions options;
    atomic_size_t inside; // threads that call NNG, each counts INSIDE_ONE; and INSIDE_STOPPED
    nng_aio *look;        // owned: the time until the next look at what is unsent
    atomic_bool is_looking;

    pthread_mutex_t mutex;  // guards all below
    pthread_cond_t drained; // or nobody is inside
    bool is_left;           // stopped, and nobody is inside any more
    Context *all;
    size_t count, receiving_count;
    size_t accepted_count; // requests that a drain waits for
    uint64_t request_count;
    bool is_refusing;
    Rpc *kept; // calls that nobody needs now, newest first
    size_t kept_count;
};

static Context *context_open(Contexts *contexts);
static void context_receive(Context *context);
static void on_received(void *argument);
static void call_refuse(Rpc *rpc, Error error);
static void call_take_turn(Context *context);
static void call_submit(Context *context);
static void on_answered(Rpc *rpc);
static void on_sent(void *argument);
static void on_look(void *argument);

Error contexts_start(const ContextsOptions *options, Contexts **out)
{
    Contexts *contexts = calloc(1, sizeof(Contexts));
    if (!contexts) return ERROR_OUT_OF_MEMORY;
    contexts->options = *options;
    pthread_mutex_init(&contexts->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&contexts->drained, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = contexts;
    if (nng_aio_alloc(&contexts->look, on_look, contexts) != 0) return ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < CONTEXTS_READY; i++) {
        Context *context = context_open(contexts);
        if (!context) return ERROR_OUT_OF_MEMORY; // the caller closes what is open
        context_receive(context);
    }
    return ERROR_NONE;
}

void contexts_refuse(Contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    contexts->is_refusing = true;
    pthread_mutex_unlock(&contexts->mutex);
}

void contexts_stop(Contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    if (atomic_fetch_or(&contexts->inside, INSIDE_STOPPED) == 0) contexts->is_left = true;
    while (!contexts->is_left)
        pthread_cond_wait(&contexts->drained, &contexts->mutex);
    pthread_mutex_unlock(&contexts->mutex);
    nng_aio_stop(contexts->look);
}

static bool is_stopped(Contexts *contexts)
{
    return atomic_load(&contexts->inside) & INSIDE_STOPPED;
}

// Around each call of NNG about a context. False: it is not to be made.
static bool enter(Contexts *contexts)
{
    size_t inside = atomic_load(&contexts->inside);
    while (!(inside & INSIDE_STOPPED)) {
        if (atomic_compare_exchange_weak(&contexts->inside, &inside, inside + INSIDE_ONE)) {
            return true;
        }
    }
    return false;
}

// Once the last one has left after the stop, all may be freed at any moment: so that it left is
// told under the mutex, and nothing is looked at behind that.
static void leave(Contexts *contexts)
{
    size_t before = atomic_fetch_sub(&contexts->inside, INSIDE_ONE);
    if (before != (INSIDE_ONE | INSIDE_STOPPED)) return;
    pthread_mutex_lock(&contexts->mutex);
    contexts->is_left = true;
    pthread_cond_broadcast(&contexts->drained);
    pthread_mutex_unlock(&contexts->mutex);
}

bool contexts_drain(Contexts *contexts, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    int failed = 0;
    pthread_mutex_lock(&contexts->mutex);
    while (contexts->accepted_count > 0 && !failed) {
        failed = pthread_cond_timedwait(&contexts->drained, &contexts->mutex, &until);
    }
    bool is_drained = contexts->accepted_count == 0;
    pthread_mutex_unlock(&contexts->mutex);
    return is_drained;
}

static void call_drop(Rpc *rpc)
{
    rpc_free(rpc);
    free(rpc);
}

static void context_free(Context *context)
{
    if (context->request) nng_msg_free(context->request);
    if (context->rpc) call_drop(context->rpc);
    free(context);
}

void contexts_free(Contexts *contexts)
{
    if (!contexts) return;
    while (contexts->all) {
        Context *context = contexts->all;
        contexts->all = context->next;
        nng_aio_free(context->receive); // waits for its callback
        nng_aio_free(context->send);
        context_free(context);
    }
    nng_aio_free(contexts->look);
    contexts_trim(contexts);
    pthread_cond_destroy(&contexts->drained);
    pthread_mutex_destroy(&contexts->mutex);
    free(contexts);
}

uint64_t contexts_request_count(Contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    uint64_t count = contexts->request_count;
    pthread_mutex_unlock(&contexts->mutex);
    return count;
}

void contexts_trim(Contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    Rpc *kept = contexts->kept;
    contexts->kept = NULL;
    contexts->kept_count = 0;
    pthread_mutex_unlock(&contexts->mutex);
    while (kept) {
        Rpc *next = kept->next;
        call_drop(kept);
        kept = next;
    }
}

// A call with the memory of the last one that ended, if there is one: it is still in the cache.
static Rpc *call_take(Contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    Rpc *rpc = contexts->kept;
    if (rpc) {
        contexts->kept = rpc->next;
        contexts->kept_count--;
    }
    pthread_mutex_unlock(&contexts->mutex);
    if (!rpc) {
        rpc = malloc(sizeof(Rpc));
        if (!rpc) return NULL;
        rpc_init(rpc);
    }
    rpc_reset(rpc);
    return rpc;
}

static void call_give(Contexts *contexts, Rpc *rpc)
{
    pthread_mutex_lock(&contexts->mutex);
    bool is_kept = contexts->kept_count < CALLS_KEPT_MAX;
    if (is_kept) {
        rpc->next = contexts->kept;
        contexts->kept = rpc;
        contexts->kept_count++;
    }
    pthread_mutex_unlock(&contexts->mutex);
    if (!is_kept) call_drop(rpc);
}

// False: no more contexts are listed.
static bool context_list(Context *context)
{
    Contexts *contexts = context->contexts;
    pthread_mutex_lock(&contexts->mutex);
    bool is_listed = !is_stopped(contexts);
    if (is_listed) {
        context->next = contexts->all;
        if (context->next) context->next->previous = context;
        contexts->all = context;
        contexts->count++;
        contexts->receiving_count++;
    }
    pthread_mutex_unlock(&contexts->mutex);
    return is_listed;
}

// Opens a context and lists it. NULL: no memory, or the socket is closed.
static Context *context_open(Contexts *contexts)
{
    Context *context = calloc(1, sizeof(Context));
    if (!context) return NULL;
    context->contexts = contexts;
    int failed = nng_aio_alloc(&context->receive, on_received, context);
    if (!failed) failed = nng_aio_alloc(&context->send, on_sent, context);
    if (!failed && enter(contexts)) {
        bool is_open = nng_ctx_open(&context->ctx, contexts->options.socket) == 0;
        bool is_listed = is_open && context_list(context);
        if (is_open && !is_listed) nng_ctx_close(context->ctx);
        leave(contexts);
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

// Begins a receive; the context is counted as receiving already.
static void context_receive(Context *context)
{
    Contexts *contexts = context->contexts;
    if (!enter(contexts)) return;
    nng_ctx_recv(context->ctx, context->receive);
    leave(contexts);
}

static void context_unlist(Context *context)
{
    Contexts *contexts = context->contexts;
    pthread_mutex_lock(&contexts->mutex);
    if (context->next) context->next->previous = context->previous;
    if (context->previous) context->previous->next = context->next;
    if (contexts->all == context) contexts->all = context->next;
    contexts->count--;
    pthread_mutex_unlock(&contexts->mutex);
}

// Closes a context that does nothing, from a callback of its own. Until it is gone its thread is
// inside: nobody else would wait for a context that is no longer listed.
static void context_close(Context *context)
{
    Contexts *contexts = context->contexts;
    if (!enter(contexts)) return; // it goes with the others
    context_unlist(context);
    nng_ctx_close(context->ctx);
    nng_aio_reap(context->receive);
    nng_aio_reap(context->send);
    context_free(context);
    leave(contexts);
}

// After its reply, or instead of one: the context receives again, or goes if enough others do.
static void context_again(Context *context)
{
    Contexts *contexts = context->contexts;
    pthread_mutex_lock(&contexts->mutex);
    if (context->is_accepted && --contexts->accepted_count == 0) {
        pthread_cond_broadcast(&contexts->drained);
    }
    context->is_accepted = false;
    bool is_needed = contexts->receiving_count < CONTEXTS_READY;
    if (is_needed) contexts->receiving_count++;
    pthread_mutex_unlock(&contexts->mutex);
    if (is_needed) {
        context_receive(context);
    } else {
        context_close(context);
    }
}

// Counts a request that has come. Returns whether it is to be refused for the server stops.
static bool count_request(Context *context)
{
    Contexts *contexts = context->contexts;
    pthread_mutex_lock(&contexts->mutex);
    contexts->request_count++;
    contexts->receiving_count--;
    bool is_refused = contexts->is_refusing;
    if (!is_refused) contexts->accepted_count++;
    context->is_accepted = !is_refused;
    bool is_short =
        contexts->receiving_count < CONTEXTS_READY / 2 && contexts->count < CONTEXTS_MAX;
    pthread_mutex_unlock(&contexts->mutex);
    // Should this fail there will be one the less until others are done.
    Context *another = is_short ? context_open(contexts) : NULL;
    if (another) context_receive(another);
    return is_refused;
}

// Ends a request without a reply: its connection is gone, or must go.
static void context_drop(Context *context, bool closes_pipe)
{
    if (closes_pipe) (void)nng_pipe_close(context->pipe);
    nng_msg_free(context->request);
    context->request = NULL;
    context_again(context);
}

static void on_received(void *argument)
{
    Context *context = argument;
    Contexts *contexts = context->contexts;
    int failed = nng_aio_result(context->receive);
    if (failed == NNG_ECLOSED || failed == NNG_ECANCELED) return; // the server stops
    if (failed) {
        context_receive(context);
        return;
    }
    context->request = nng_aio_get_msg(context->receive);
    context->pipe = nng_msg_get_pipe(context->request);
    bool is_refused = count_request(context);
    Rpc *rpc = call_take(contexts);
    if (!rpc) {
        context_drop(context, /* closes_pipe= */ true);
        return;
    }
    uint32_t pipe_id = (uint32_t)nng_pipe_id(context->pipe);
    context->client = clients_request(contexts->options.clients, pipe_id, &context->may_run);
    if (!context->client) {
        call_give(contexts, rpc);
        context_drop(context, /* closes_pipe= */ false);
        return;
    }
    context->rpc = rpc;
    rpc->request = slice(nng_msg_body(context->request), nng_msg_len(context->request));
    rpc->on_done = on_answered;
    rpc->context = context;
    rpc->token_wanted =
        client_needs_token(context->client) ? contexts->options.token : (Slice){NULL, 0};
    Error error = ERROR_NONE;
    if (!context->may_run) {
        error = ERROR_TOO_MANY_IN_FLIGHT;
    } else if (is_refused) {
        error = rpc_fail(rpc, ERROR_UNAVAILABLE, "the server is shutting down");
    }
    context->turn.bytes = rpc->request.size;
    if (error) {
        call_refuse(rpc, error);
    } else {
        call_take_turn(context);
    }
}

static void call_refuse(Rpc *rpc, Error error)
{
    dispatch_finish(rpc, error);
    on_answered(rpc);
}

// What waits for its turn is another thread's from then on.
static void call_take_turn(Context *context)
{
    switch (client_turn(context->contexts->options.clients, context->client, &context->turn)) {
    case TURN_NOW: call_submit(context); break;
    case TURN_LATER: break;
    case TURN_NEVER: call_refuse(context->rpc, ERROR_QUEUE_FULL); break;
    }
}

// Reads run right here: the server does not close while one does.
static void call_submit(Context *context)
{
    Contexts *contexts = context->contexts;
    Rpc *rpc = context->rpc;
    if (enter(contexts)) {
        engine_submit(contexts->options.engine, rpc);
        leave(contexts);
    } else {
        call_refuse(rpc, rpc_fail(rpc, ERROR_UNAVAILABLE, "the server is shutting down"));
    }
}

// A reply is out, or never will be. Then it may be the turn of requests that waited for it. Once
// the server closes they have none: it frees them.
static void reply_done(Context *context, bool is_taken)
{
    static _Thread_local bool is_running; // a call that ends at once comes back here
    Contexts *contexts = context->contexts;
    Clients *clients = contexts->options.clients;
    bool has_next = client_sent(clients, &context->reply, is_taken);
    if (!has_next || is_running || !enter(contexts)) return;
    is_running = true;
    bool is_connected;
    for (ClientTurn *turn; (turn = clients_next(clients, &is_connected)) != NULL;) {
        Rpc *rpc = ((Context *)turn)->rpc;
        if (is_connected) {
            engine_submit(contexts->options.engine, rpc);
        } else {
            call_refuse(rpc, rpc_fail(rpc, ERROR_UNAVAILABLE, "the client is gone"));
        }
    }
    is_running = false;
    leave(contexts);
}

// Makes the reply's message and lets the request's go. NULL: no memory.
static nng_msg *reply_of(Context *context)
{
    Slice bytes = buffer_slice(&context->rpc->reply);
    nng_msg *reply;
    if (bytes.size == 0 || nng_msg_alloc(&reply, bytes.size) != 0) return NULL;
    memcpy(nng_msg_body(reply), bytes.bytes, bytes.size);
    return reply;
}

static void log_cut_off(void)
{
    log_write(LOG_WARNING, "connection closed: it does not read its replies", NULL);
}

// From inside. A look is on its way from now on.
static void keep_looking(Contexts *contexts)
{
    if (!atomic_load(&contexts->is_looking) && !atomic_exchange(&contexts->is_looking, true)) {
        nng_sleep_aio(UNSENT_LOOK_MS, contexts->look);
    }
}

// What is handed to the socket while this says that nothing is unsent begins to look itself.
static void on_look(void *argument)
{
    Contexts *contexts = argument;
    if (nng_aio_result(contexts->look) != 0 || !enter(contexts)) return; // the server stops
    atomic_store(&contexts->is_looking, false);
    if (clients_look(contexts->options.clients)) keep_looking(contexts);
    for (uint32_t id; (id = clients_overdue(contexts->options.clients)) != 0;) {
        log_cut_off();
        (void)nng_pipe_close((nng_pipe){.id = id});
    }
    leave(contexts);
}

static void on_answered(Rpc *rpc)
{
    Context *context = rpc->context;
    Clients *clients = context->contexts->options.clients;
    nng_msg *reply = reply_of(context);
    context->rpc = NULL;
    call_give(context->contexts, rpc);
    context->reply.bytes = reply ? nng_msg_len(reply) : 0;
    bool is_fine = client_answered(clients, context->client, context->may_run, &context->reply);
    if (!reply || !is_fine) {
        // Once for a connection, however many of its replies wait.
        if (reply && client_cut_off(clients, context->client)) log_cut_off();
        if (reply) nng_msg_free(reply);
        reply_done(context, /* is_taken= */ false);
        context_drop(context, /* closes_pipe= */ true);
        return;
    }
    nng_msg_free(context->request);
    context->request = NULL;
    Contexts *contexts = context->contexts;
    if (enter(contexts)) {
        nng_aio_set_msg(context->send, reply);
        keep_looking(contexts);
        nng_ctx_send(context->ctx, context->send);
        leave(contexts);
    } else {
        nng_msg_free(reply);
        reply_done(context, /* is_taken= */ false);
        context_again(context);
    }
}

static void on_sent(void *argument)
{
    Context *context = argument;
    int failed = nng_aio_result(context->send);
    if (failed) {
        nng_msg_free(nng_aio_get_msg(context->send));
        nng_aio_set_msg(context->send, NULL);
    }
    if (failed && failed != NNG_ECLOSED && failed != NNG_ECANCELED) {
        (void)nng_pipe_close(context->pipe); // no memory: its reply will never come
    }
    reply_done(context, /* is_taken= */ !failed);
    context_again(context);
}
