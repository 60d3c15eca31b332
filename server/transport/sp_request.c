// Requests. The counts and the memory kept for the next ones are under one mutex, which is held for
// a few instructions at a time.

#include "transport/sp_request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "report/log.h"
#include "rpc/dispatch.h"
#include "rpc/engine.h"

enum {
    WAY_ID_BYTES = 4,
    WAY_IDS_MAX = 8, // the request's own and those of whoever passed it on
    FRAME_KEEP_BYTES_MAX = 64 * 1024,
};

struct Requests {
    RequestsOptions options;
    atomic_bool is_stopped;

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t drained;
    size_t accepted_count;
    uint64_t count;
    bool is_refusing;
    SpRequest *kept; // that nobody needs now, newest first
    size_t kept_count;
};

static void on_answered(Rpc *rpc);
static void take_turn(SpRequest *request);
static void run_turns(Requests *requests);

Error requests_open(const RequestsOptions *options, Requests **out)
{
    Requests *requests = calloc(1, sizeof(Requests));
    if (!requests) return ERROR_OUT_OF_MEMORY;
    requests->options = *options;
    pthread_mutex_init(&requests->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&requests->drained, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = requests;
    return ERROR_NONE;
}

static void request_free(SpRequest *request)
{
    rpc_free(&request->rpc);
    free(request->bytes);
    free(request);
}

void requests_close(Requests *requests)
{
    if (!requests) return;
    requests_trim(requests);
    pthread_cond_destroy(&requests->drained);
    pthread_mutex_destroy(&requests->mutex);
    free(requests);
}

void requests_trim(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    SpRequest *kept = requests->kept;
    requests->kept = NULL;
    requests->kept_count = 0;
    pthread_mutex_unlock(&requests->mutex);
    while (kept) {
        SpRequest *next = kept->next;
        request_free(kept);
        kept = next;
    }
}

void requests_refuse(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    requests->is_refusing = true;
    pthread_mutex_unlock(&requests->mutex);
}

void requests_stop(Requests *requests)
{
    atomic_store(&requests->is_stopped, true);
    run_turns(requests);
}

bool requests_drain(Requests *requests, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    int failed = 0;
    pthread_mutex_lock(&requests->mutex);
    while (requests->accepted_count > 0 && !failed) {
        failed = pthread_cond_timedwait(&requests->drained, &requests->mutex, &until);
    }
    bool is_drained = requests->accepted_count == 0;
    pthread_mutex_unlock(&requests->mutex);
    return is_drained;
}

uint64_t requests_count(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    uint64_t count = requests->count;
    pthread_mutex_unlock(&requests->mutex);
    return count;
}

static bool make_room(SpRequest *request, size_t size)
{
    request->size = size;
    if (request->capacity >= size) return true;
    free(request->bytes);
    request->bytes = malloc(size);
    request->capacity = request->bytes ? size : 0;
    return request->bytes != NULL;
}

// With the memory of the last one that ended, if there is one: it is still in the cache.
SpRequest *request_take(Requests *requests, size_t size)
{
    pthread_mutex_lock(&requests->mutex);
    SpRequest *request = requests->kept;
    if (request) {
        requests->kept = request->next;
        requests->kept_count--;
    }
    pthread_mutex_unlock(&requests->mutex);
    if (!request) {
        request = calloc(1, sizeof(SpRequest));
        if (!request) return NULL;
        request->requests = requests;
        rpc_init(&request->rpc);
    }
    request->next = NULL;
    request->is_accepted = request->is_late = false;
    if (make_room(request, size)) return request;
    request_free(request);
    return NULL;
}

// Back from whoever held it, counted as done. Its memory is kept for the next one, unless its reply
// was read late: then the server may be idle, and nobody trims what an idle server keeps.
static void request_end(SpRequest *request)
{
    Requests *requests = request->requests;
    if (request->capacity > FRAME_KEEP_BYTES_MAX) {
        free(request->bytes);
        request->bytes = NULL;
        request->capacity = 0;
    }
    pthread_mutex_lock(&requests->mutex);
    if (request->is_accepted && --requests->accepted_count == 0) {
        pthread_cond_broadcast(&requests->drained);
    }
    bool is_kept = !request->is_late && requests->kept_count < CALLS_KEPT_MAX;
    if (is_kept) {
        request->next = requests->kept;
        requests->kept = request;
        requests->kept_count++;
    }
    pthread_mutex_unlock(&requests->mutex);
    if (!is_kept) request_free(request);
}

void request_give(SpRequest *request)
{
    request_end(request);
}

// Splits the payload. 0: it is no request, nor one of somebody else's; SIZE_MAX: it has passed
// through too many hands.
static size_t way_of(const SpRequest *request)
{
    for (size_t ids = 1; ids <= WAY_IDS_MAX; ids++) {
        if (request->size < ids * WAY_ID_BYTES) return 0;
        if (request->bytes[(ids - 1) * WAY_ID_BYTES] & 0x80) return ids * WAY_ID_BYTES;
    }
    return SIZE_MAX;
}

// Returns whether it is to be refused for the server stops.
static bool count_request(SpRequest *request)
{
    Requests *requests = request->requests;
    pthread_mutex_lock(&requests->mutex);
    requests->count++;
    bool is_refused = requests->is_refusing;
    if (!is_refused) requests->accepted_count++;
    request->is_accepted = !is_refused;
    pthread_mutex_unlock(&requests->mutex);
    return is_refused;
}

static void refuse(SpRequest *request, Error error)
{
    dispatch_finish(&request->rpc, error);
    on_answered(&request->rpc);
}

void request_begin(SpRequest *request)
{
    Requests *requests = request->requests;
    const RequestsOptions *options = &requests->options;
    request->way_bytes = way_of(request);
    if (request->way_bytes == 0 || request->way_bytes == SIZE_MAX) {
        if (request->way_bytes == 0) {
            options->hooks.cut_off(options->hooks.context, request->place, request->serial);
        }
        request_end(request);
        return;
    }
    request->client = clients_request(options->clients, request->serial, &request->may_run);
    if (!request->client) {
        request_end(request);
        return;
    }
    bool is_refused = count_request(request);
    Rpc *rpc = &request->rpc;
    rpc_reset(rpc);
    rpc->request = slice(request->bytes + request->way_bytes, request->size - request->way_bytes);
    rpc->on_done = on_answered;
    rpc->context = request;
    rpc->token_wanted = (Slice){NULL, 0};
    request->turn.bytes = rpc->request.size;
    if (!request->may_run) {
        refuse(request, ERROR_TOO_MANY_IN_FLIGHT);
    } else if (is_refused) {
        refuse(request, rpc_fail(rpc, ERROR_UNAVAILABLE, "the server is shutting down"));
    } else {
        take_turn(request);
    }
}

// What waits for its turn is another thread's from then on.
static void take_turn(SpRequest *request)
{
    const RequestsOptions *options = &request->requests->options;
    switch (client_turn(options->clients, request->client, &request->turn)) {
    case TURN_NOW: engine_submit(options->engine, &request->rpc); break;
    case TURN_LATER: break;
    case TURN_NEVER: refuse(request, ERROR_QUEUE_FULL); break;
    }
}

void request_reply(const SpRequest *request, Slice out[2])
{
    out[0] = slice(request->bytes, request->way_bytes);
    out[1] = buffer_slice(&request->rpc.reply);
}

static void on_answered(Rpc *rpc)
{
    SpRequest *request = rpc->context;
    const RequestsOptions *options = &request->requests->options;
    const RequestsHooks *hooks = &options->hooks;
    size_t bytes = buffer_size(&rpc->reply);
    request->reply.bytes = bytes;
    bool is_fine =
        client_answered(options->clients, request->client, request->may_run, &request->reply);
    if (bytes == 0 || !is_fine) { // no memory for a reply, or too many wait for being read
        // Once for a connection, however many of its replies wait.
        if (bytes > 0 && client_cut_off(options->clients, request->client)) {
            log_write(LOG_WARNING, "connection closed: it does not read its replies", NULL);
        }
        hooks->cut_off(hooks->context, request->place, request->serial);
        request_sent(request, /* is_taken= */ false);
        return;
    }
    SendResult result = hooks->send(hooks->context, request);
    if (result != SEND_LATER) request_sent(request, result == SEND_DONE);
}

void request_sent(SpRequest *request, bool is_taken)
{
    Requests *requests = request->requests;
    bool has_next = client_sent(requests->options.clients, &request->reply, is_taken);
    if (has_next) run_turns(requests);
    request_end(request);
}

// Runs those whose turn has come. A call that ends at once comes back here: it is not run deeper.
static void run_turns(Requests *requests)
{
    static _Thread_local bool is_running;
    if (is_running) return;
    is_running = true;
    bool is_connected;
    for (ClientTurn *turn;
         (turn = clients_next(requests->options.clients, &is_connected)) != NULL;) {
        SpRequest *request = (SpRequest *)turn;
        if (is_connected && !atomic_load(&requests->is_stopped)) {
            engine_submit(requests->options.engine, &request->rpc);
        } else {
            refuse(request, rpc_fail(&request->rpc, ERROR_UNAVAILABLE, "the client is gone"));
        }
    }
    is_running = false;
}
