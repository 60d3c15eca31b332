// The bus on NNG: a PUB socket on ipc, and a thread that sends.
//
// PUB never blocks: it has a queue of BUS_SEND_MESSAGES_MAX for each subscriber, which drops its
// oldest message when it is full. But a send costs a system call for each subscriber, so a thread
// of the bus sends, not the writer. While nobody subscribes, the event queue of the bus is off and
// the thread sleeps without a timer.
//
// A subscriber cannot know when it is subscribed: the events of a commit may be sent while its
// hello is on the way. So a heartbeat follows each arrival, for all subscribers. A subscriber that
// has received anything is subscribed, and lists the events from there.

#include <assert.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/socket_path.h"
#include "os/thread.h"
#include "report/log.h"
#include "transport/account.h"
#include "transport/bus.h"
#include "transport/nng_setup.h"
#include "wire/bus_message.h"

struct Bus {
    Engine *engine; // borrowed
    int64_t heartbeat_ns;
    nng_socket socket;
    bool is_open, has_thread;
    EventQueue *queue; // owned
    pthread_t thread;
    atomic_bool has_arrival; // a new subscriber waits for a heartbeat
    atomic_bool is_closing;

    pthread_mutex_t mutex; // guards all below
    Accounts *accounts;    // owned: of the subscribers
    AccountGroup subscribers;
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument);
static void *bus_main(void *context);

static Error listen_on(Bus *bus, const char *path, ErrorDetail *detail)
{
    int failed = nng_pub0_open(&bus->socket);
    bus->is_open = !failed;
    if (!failed) failed = nng_socket_set_int(bus->socket, NNG_OPT_SENDBUF, BUS_SEND_MESSAGES_MAX);
    const nng_pipe_ev events[] = {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_ADD_POST, NNG_PIPE_EV_REM_POST};
    for (size_t i = 0; !failed && i < sizeof(events) / sizeof(*events); i++) {
        failed = nng_pipe_notify(bus->socket, events[i], on_pipe, bus);
    }
    if (failed) return nng_say(detail, "cannot open the event socket", failed);
    nng_listener listener;
    return nng_listen_ipc(bus->socket, path, BUS_FRAME_BYTES_MAX, detail, &listener);
}

Error bus_start(const BusOptions *options, ErrorDetail *detail, Bus **out)
{
    char path[SOCKET_PATH_BYTES_MAX + 1];
    if (!socket_path_of_events(options->socket_path, path)) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "%s is too long: the path of the events beside it may have %d bytes",
                         options->socket_path, SOCKET_PATH_BYTES_MAX);
    }
    Bus *bus = calloc(1, sizeof(Bus));
    if (!bus) return ERROR_OUT_OF_MEMORY;
    nng_setup();
    bus->engine = options->engine;
    bus->heartbeat_ns =
        (options->heartbeat_ms ? options->heartbeat_ms : HEARTBEAT_MS) * INT64_C(1000000);
    bus->subscribers.count_max =
        options->subscribers_max ? options->subscribers_max : SUBSCRIBERS_MAX;
    pthread_mutex_init(&bus->mutex, NULL);
    Error error = accounts_open(&bus->accounts);
    if (!error) error = event_queue_open(engine_events(bus->engine), 0, &bus->queue);
    if (!error) event_queue_turn(bus->queue, false);
    if (!error) error = listen_on(bus, path, detail);
    if (!error) {
        error = thread_start(&bus->thread, bus_main, bus, "send events", detail);
        bus->has_thread = !error;
    }
    if (error) {
        bus_close(bus);
        return error;
    }
    *out = bus;
    return ERROR_NONE;
}

void bus_close(Bus *bus)
{
    if (!bus) return;
    if (bus->has_thread) {
        atomic_store(&bus->is_closing, true);
        event_queue_wake(bus->queue);
        pthread_join(bus->thread, NULL);
        // NNG drops what is left in the queues of subscribers, and cannot tell whether any is.
        if (bus_subscriber_count(bus) > 0) nng_msleep(BUS_DRAIN_MS);
    }
    if (bus->is_open) (void)nng_close(bus->socket); // no callback runs after it
    event_queue_close(bus->queue);
    accounts_close(bus->accounts);
    pthread_mutex_destroy(&bus->mutex);
    free(bus);
}

size_t bus_subscriber_count(Bus *bus)
{
    pthread_mutex_lock(&bus->mutex);
    size_t count = bus->subscribers.count;
    pthread_mutex_unlock(&bus->mutex);
    return count;
}

// Returns false if there are too many, or no memory.
static bool add_subscriber(Bus *bus, uint32_t pipe_id)
{
    pthread_mutex_lock(&bus->mutex);
    bool is_added = account_open(bus->accounts, &bus->subscribers, pipe_id, NULL) != NULL;
    pthread_mutex_unlock(&bus->mutex);
    return is_added;
}

static void remove_subscriber(Bus *bus, uint32_t pipe_id)
{
    pthread_mutex_lock(&bus->mutex);
    Account *account = account_find(bus->accounts, &bus->subscribers, pipe_id);
    if (account) account_close(bus->accounts, account);
    pthread_mutex_unlock(&bus->mutex);
}

// NNG holds locks of the socket here, so it may be called about this pipe only. The end of a pipe
// may be reported before its arrival.
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    Bus *bus = argument;
    uint32_t pipe_id = (uint32_t)nng_pipe_id(pipe);
    if (event == NNG_PIPE_EV_REM_POST) {
        remove_subscriber(bus, pipe_id);
        if (bus_subscriber_count(bus) > 0) return;
    } else if (event == NNG_PIPE_EV_ADD_PRE) {
        if (!nng_peer_is_allowed(pipe) || !add_subscriber(bus, pipe_id)) {
            (void)nng_pipe_close(pipe);
        }
        return;
    } else {
        atomic_store(&bus->has_arrival, true);
    }
    event_queue_wake(bus->queue);
}

static bool send_bytes(Bus *bus, const void *bytes, size_t size)
{
    nng_msg *message;
    if (nng_msg_alloc(&message, size) != 0) return false;
    memcpy(nng_msg_body(message), bytes, size);
    if (nng_sendmsg(bus->socket, message, 0) == 0) return true;
    nng_msg_free(message);
    return false;
}

static bool send_batch(Bus *bus, EventBatch *batch)
{
    HubEvent event;
    bool is_whole = !batch->has_lost;
    while (event_batch_next(batch, &event)) {
        if (!send_bytes(bus, event.message.bytes, event.message.size)) is_whole = false;
    }
    return is_whole;
}

static void send_heartbeat(Bus *bus, uint64_t newest_sequence)
{
    Store *store = engine_store(bus->engine);
    Event event = EVENT__INIT;
    event.sequence = newest_sequence;
    event.instance_id = (char *)(uintptr_t)store_instance_id(store);
    event.type = (char *)(uintptr_t)EVENT_HEARTBEAT;
    event.created_at = clock_now_ms(&store_options(store)->clock);
    Slice topic = slice_of(BUS_TOPIC_HEARTBEAT);
    uint8_t packed[224], bytes[256];
    size_t packed_bytes = protobuf_c_message_get_packed_size(&event.base);
    size_t size = bus_message_bytes(topic.size, packed_bytes);
    assert(packed_bytes <= sizeof(packed) && size <= sizeof(bytes));
    protobuf_c_message_pack(&event.base, packed);
    bus_message_write(bytes, topic, slice(packed, packed_bytes));
    if (!send_bytes(bus, bytes, size)) log_write(LOG_ERROR, "no memory for a heartbeat", NULL);
}

// A heartbeat has the sequence up to which events were sent before it, so it follows the events
// that were taken together with that sequence.
static void *bus_main(void *context)
{
    Bus *bus = context;
    EventBatch batch = {.read_bytes = 0};
    bool is_on = false;
    int64_t until_ns = INT64_MAX, beat_ns = 0;
    for (;;) {
        bool is_last = atomic_load(&bus->is_closing);
        (void)event_queue_take(bus->queue, is_last ? 0 : until_ns, &batch);
        bool is_whole = send_batch(bus, &batch);
        if (is_last) break;
        bool is_wanted = bus_subscriber_count(bus) > 0;
        if (is_wanted != is_on) {
            event_queue_turn(bus->queue, is_wanted);
            is_on = is_wanted;
            until_ns = beat_ns = 0; // take again at once: there may be a newer sequence by now
            continue;
        }
        until_ns = INT64_MAX;
        if (!is_on) continue;
        int64_t now_ns = clock_monotonic_ns();
        bool has_arrival = atomic_exchange(&bus->has_arrival, false);
        if (has_arrival || !is_whole || now_ns >= beat_ns) {
            send_heartbeat(bus, batch.newest_sequence);
            beat_ns = now_ns + bus->heartbeat_ns;
        }
        until_ns = beat_ns;
    }
    event_batch_free(&batch);
    return NULL;
}
