// The gate.

#include "gate.h"

#include <stdlib.h>

struct PendingCall {
    Rpc rpc;
    Slice owned; // the request, unless it is borrowed
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_done;
};

static Error seam_before(void *context, KvOperation operation, KvTable table)
{
    Gate *gate = context;
    Error error = ERROR_NONE;
    pthread_mutex_lock(&gate->mutex);
    if (operation == KV_PUT && table == gate->failing_table) error = gate->failing_error;
    if (operation == KV_COMMIT) {
        gate->is_holding = gate->is_closed;
        pthread_cond_broadcast(&gate->changed);
        while (gate->is_closed && gate->passes == 0) {
            pthread_cond_wait(&gate->changed, &gate->mutex);
        }
        if (gate->is_closed) gate->passes--;
        gate->is_holding = false;
    }
    pthread_mutex_unlock(&gate->mutex);
    return error;
}

void gate_init(Gate *gate)
{
    *gate = (Gate){.is_closed = false};
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

KvSeam gate_seam(Gate *gate)
{
    return (KvSeam){seam_before, gate};
}

static void gate_set(Gate *gate, bool is_closed)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_closed = is_closed;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_close(Gate *gate)
{
    gate_set(gate, true);
}

void gate_open(Gate *gate)
{
    gate_set(gate, false);
}

void gate_let_one_through(Gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    CHECK(gate->is_holding);
    gate->passes++;
    gate->is_holding = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_wait_held(Gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (!gate->is_holding)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

bool gate_is_holding(Gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    bool is_holding = gate->is_holding;
    pthread_mutex_unlock(&gate->mutex);
    return is_holding;
}

void gate_fail_puts(Gate *gate, KvTable table, Error error)
{
    pthread_mutex_lock(&gate->mutex);
    gate->failing_table = table;
    gate->failing_error = error;
    pthread_mutex_unlock(&gate->mutex);
}

static void pending_done(Rpc *rpc)
{
    PendingCall *pending = rpc->context;
    pthread_mutex_lock(&pending->mutex);
    pending->is_done = true;
    pthread_cond_signal(&pending->done);
    pthread_mutex_unlock(&pending->mutex);
}

PendingCall *pending_send(Engine *engine, Slice request)
{
    PendingCall *pending = calloc(1, sizeof(PendingCall));
    CHECK(pending != NULL);
    pthread_mutex_init(&pending->mutex, NULL);
    pthread_cond_init(&pending->done, NULL);
    rpc_init(&pending->rpc);
    rpc_reset(&pending->rpc);
    pending->rpc.request = request;
    pending->rpc.context = pending;
    pending->rpc.on_done = pending_done;
    engine_submit(engine, &pending->rpc);
    return pending;
}

PendingCall *pending_submit(Engine *engine, enum MethodIndex method, const void *request,
                            int64_t timeout_ms)
{
    Slice bytes = engine_request(method, request, NULL, timeout_ms);
    PendingCall *pending = pending_send(engine, bytes);
    pending->owned = bytes;
    return pending;
}

bool pending_is_done(PendingCall *pending)
{
    pthread_mutex_lock(&pending->mutex);
    bool is_done = pending->is_done;
    pthread_mutex_unlock(&pending->mutex);
    return is_done;
}

Error pending_wait(PendingCall *pending)
{
    pthread_mutex_lock(&pending->mutex);
    while (!pending->is_done)
        pthread_cond_wait(&pending->done, &pending->mutex);
    pthread_mutex_unlock(&pending->mutex);
    Error error = pending->rpc.error;
    rpc_free(&pending->rpc);
    free((void *)(uintptr_t)pending->owned.bytes);
    pthread_cond_destroy(&pending->done);
    pthread_mutex_destroy(&pending->mutex);
    free(pending);
    return error;
}

PendingCall *pending_append(Engine *engine, const char *session, const char *text,
                            int64_t timeout_ms)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    Text content = TEXT__INIT;
    content.text = (char *)(uintptr_t)text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    return pending_submit(engine, METHOD_APPEND_MESSAGE, &request, timeout_ms);
}
