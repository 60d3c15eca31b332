// The NNG channel: one REQ socket, with a context for each call. libnng connects, matches replies
// and redials. It must never resend, because only the caller knows which call may run again.

#include "channel_nng.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/process.h"
#include "status.h"
#include "wait.h"

enum {
    CONNECT_ONCE_MS = 250, // how long a call without patience waits for a connection
    WAIT_MS_LONGEST = 24 * 3600 * 1000,
};

typedef struct NngChannel {
    Channel channel;
    char *url;           // owned
    unsigned generation; // of the process that made it
    nng_socket socket;
    nng_dialer dialer;
    atomic_bool was_connected;
    pthread_mutex_t mutex; // guards all below
    bool is_dialing;
    pthread_cond_t call_ended;
    unsigned in_flight;
} NngChannel;

static int nng_channel_call(Channel *channel, ChannelCall *call, TineStatus *status);
static void nng_channel_close(Channel *channel);

static int socket_open(NngChannel *nng)
{
    int code = nng_req0_open(&nng->socket);
    if (code) return code;
    code = nng_socket_set_ms(nng->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (!code) code = nng_dialer_create(&nng->dialer, nng->socket, nng->url);
    if (!code) code = nng_dialer_set_ms(nng->dialer, NNG_OPT_RECONNMINT, BACKOFF_MS_MIN);
    if (!code) code = nng_dialer_set_ms(nng->dialer, NNG_OPT_RECONNMAXT, BACKOFF_MS_MAX);
    if (!code) {
        code = nng_dialer_set_size(nng->dialer, NNG_OPT_RECVMAXSZ, CHANNEL_PAYLOAD_BYTES_MAX);
    }
    if (code) nng_close(nng->socket);
    return code;
}

int channel_nng_open(const char *url, TineStatus *status, Channel **out_channel)
{
    NngChannel *nng = calloc(1, sizeof(NngChannel));
    if (nng) nng->url = strdup(url);
    if (!nng || !nng->url) {
        free(nng);
        return status_out_of_memory(status);
    }
    int code = socket_open(nng);
    if (code) {
        free(nng->url);
        free(nng);
        if (code == NNG_ENOMEM) return status_out_of_memory(status);
        char message[sizeof(status->message)];
        snprintf(message, sizeof(message), "libnng does not open '%s': %s", url,
                 nng_strerror(code));
        return status_set(status, STATUS_INVALID_ARGUMENT, "INVALID_ARGUMENT", message);
    }
    nng->generation = process_generation();
    pthread_mutex_init(&nng->mutex, NULL);
    condition_init(&nng->call_ended);
    nng->channel =
        (Channel){.call = nng_channel_call, .close = nng_channel_close, .is_remote = true};
    *out_channel = &nng->channel;
    return STATUS_OK;
}

static nng_duration duration_until(int64_t until_ns)
{
    return until_ns == INT64_MAX ? NNG_DURATION_INFINITE : poll_ms_until(until_ns, WAIT_MS_LONGEST);
}

// Starts to connect with the first call. NNG 1.11 leaks a dialer that is closed while it connects,
// so a client that is never used must not start to.
static int dial(NngChannel *nng)
{
    pthread_mutex_lock(&nng->mutex);
    int code = nng->is_dialing ? 0 : nng_dialer_start(nng->dialer, NNG_FLAG_NONBLOCK);
    if (!code) nng->is_dialing = true;
    pthread_mutex_unlock(&nng->mutex);
    return code;
}

// Waits until fewer than CHANNEL_IN_FLIGHT_MAX calls run. Returns false if the time is up.
static bool turn_take(NngChannel *nng, int64_t deadline_ns)
{
    pthread_mutex_lock(&nng->mutex);
    bool is_late = false;
    while (nng->in_flight == CHANNEL_IN_FLIGHT_MAX && !is_late) {
        is_late = !condition_wait(&nng->call_ended, &nng->mutex, deadline_ns);
    }
    if (!is_late) nng->in_flight++;
    if (is_late) pthread_cond_signal(&nng->call_ended); // passes on a signal
    pthread_mutex_unlock(&nng->mutex);
    return !is_late;
}

static void turn_end(NngChannel *nng)
{
    pthread_mutex_lock(&nng->mutex);
    nng->in_flight--;
    pthread_cond_signal(&nng->call_ended);
    pthread_mutex_unlock(&nng->mutex);
}

// Waits for a connection and hands it the request.
static int request_send(NngChannel *nng, nng_ctx context, ChannelCall *call, TineStatus *status)
{
    nng_msg *message;
    if (nng_msg_alloc(&message, 0) != 0) return status_out_of_memory(status);
    if (nng_msg_append(message, call->request.bytes, call->request.size) != 0) {
        nng_msg_free(message);
        return status_out_of_memory(status);
    }
    int64_t until_ns = clock_monotonic_ns() + INT64_C(1000000) * CONNECT_ONCE_MS;
    bool is_patient = call->waits_at_first || atomic_load(&nng->was_connected);
    if (is_patient && call->connect_until_ns > until_ns) until_ns = call->connect_until_ns;
    if (call->deadline_ns < until_ns) until_ns = call->deadline_ns;
    (void)nng_ctx_set_ms(context, NNG_OPT_SENDTIMEO, duration_until(until_ns));
    int code = dial(nng);
    if (!code) code = nng_ctx_sendmsg(context, message, 0);
    if (code == 0) {
        atomic_store(&nng->was_connected, true);
        return STATUS_OK;
    }
    nng_msg_free(message);
    if (time_is_past(call->deadline_ns)) {
        return status_deadline_exceeded(status, /* was_sent= */ false);
    }
    return status_unavailable(status, "no tined answers at %s: %s", nng->url, nng_strerror(code));
}

static int reply_receive(const NngChannel *nng, nng_ctx context, ChannelCall *call,
                         TineStatus *status)
{
    nng_msg *message;
    (void)nng_ctx_set_ms(context, NNG_OPT_RECVTIMEO, duration_until(call->deadline_ns));
    int code = nng_ctx_recvmsg(context, &message, 0);
    if (code == NNG_ETIMEDOUT && time_is_past(call->deadline_ns)) {
        return status_deadline_exceeded(status, /* was_sent= */ true);
    }
    if (code) {
        call->is_broken = true;
        return status_unavailable(status,
                                  "the connection to %s broke before the reply came: %s; whether "
                                  "the call was done is not known",
                                  nng->url, nng_strerror(code));
    }
    Slice reply = slice(nng_msg_body(message), nng_msg_len(message));
    Error error = buffer_reset_for(call->response, reply.size);
    if (!error) error = buffer_append(call->response, reply);
    nng_msg_free(message);
    return error ? status_out_of_memory(status) : STATUS_OK;
}

static int nng_channel_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    NngChannel *nng = (NngChannel *)channel;
    call->is_broken = false;
    call->was_sent = false;
    if (nng->generation != process_generation()) {
        return status_unavailable(status,
                                  "libnng does not work in a child of fork; open %s there "
                                  "by ipc://, or after an exec",
                                  nng->url);
    }
    if (!turn_take(nng, call->deadline_ns)) {
        return status_deadline_exceeded(status, /* was_sent= */ false);
    }
    nng_ctx context;
    int code = nng_ctx_open(&context, nng->socket) == 0 ? STATUS_OK : status_out_of_memory(status);
    if (!code) {
        code = request_send(nng, context, call, status);
        call->was_sent = code == STATUS_OK;
        if (!code) code = reply_receive(nng, context, call, status);
        (void)nng_ctx_close(context);
    }
    turn_end(nng);
    return code;
}

static void nng_channel_close(Channel *channel)
{
    NngChannel *nng = (NngChannel *)channel;
    if (nng->generation == process_generation()) { // libnng would abort a child of fork
        (void)nng_close(nng->socket);
        pthread_mutex_destroy(&nng->mutex);
        pthread_cond_destroy(&nng->call_ended);
    }
    free(nng->url);
    free(nng);
}
