// Direct reads.
//
// Each read first checks whether the store that is open here is still the server's. It is, as long
// as the connection is the one over which the server named the store, and the files still have
// their names. If not, or if anything goes wrong, the read becomes a call and is counted by its
// reason. The server is then asked again where its store is: once a second, or when the connection
// has changed.
//
// The next read sees every write that was acknowledged: LMDB publishes a commit before tined
// answers it, and each read begins a transaction of its own.

#include "channel_direct.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "direct_store.h"
#include "os/clock.h"
#include "os/process.h"
#include "rpc/dispatch.h"
#include "rpc/reader.h"
#include "status.h"
#include "store/history.h"
#include "tine_calls.h"
#include "wire/envelope.h"

enum { RPCS_KEPT_MAX = 8 };

static const int64_t LOOK_NS = 1000000000;  // how often to check whether the server is there …
static const int64_t RETRY_NS = 1000000000; // … and to ask again where its store is

typedef struct DirectChannel {
    Channel channel;
    Channel *calls; // owned
    unsigned generation;
    Clock clock;
    size_t map_bytes;

    pthread_mutex_t mutex;      // guards the members up to the counters
    DirectStore *store;         // held; NULL: none is open
    unsigned connection_serial; // of the connection over which the server was asked
    bool is_asking;             // a read is asking where the store is
    int64_t ask_after_ns;
    int64_t look_after_ns;
    Doubt doubt; // why there is no store
    Rpc *kept[RPCS_KEPT_MAX];
    size_t kept_count;
    char last_why[sizeof(((TineClientStats *)0)->last_why)];

    atomic_uint_fast64_t reads;
    atomic_uint_fast64_t fallbacks[TINE_FALLBACK_COUNT];
} DirectChannel;

static int direct_call(Channel *channel, ChannelCall *call, TineStatus *status);
static bool read_here(DirectChannel *direct, ChannelCall *call);
static bool store_take(DirectChannel *direct, const ChannelCall *call, DirectStore **out_store,
                       Doubt *out_doubt);
static bool store_ask(DirectChannel *direct, const ChannelCall *call, DirectStore **out_store,
                      Doubt *out_doubt);
static void store_drop(DirectChannel *direct, DirectStore *store, const Doubt *doubt);
static bool run(DirectChannel *direct, DirectStore *store, ChannelCall *call, Doubt *out_doubt);
static Feed *direct_feed_open(Channel *channel);
static unsigned direct_connection_serial(Channel *channel, bool looks);
static void direct_close(Channel *channel);

int channel_direct_open(Channel *calls, TineStatus *status, Channel **out_channel)
{
    DirectChannel *direct = calloc(1, sizeof(DirectChannel));
    if (!direct) {
        calls->close(calls);
        return status_out_of_memory(status);
    }
    direct->channel = (Channel){
        .call = direct_call,
        .close = direct_close,
        .feed_open = direct_feed_open,
        .connection_serial = direct_connection_serial,
        .is_remote = true,
    };
    direct->calls = calls;
    direct->generation = process_generation();
    pthread_mutex_init(&direct->mutex, NULL);
    *out_channel = &direct->channel;
    return STATUS_OK;
}

static int direct_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    DirectChannel *direct = (DirectChannel *)channel;
    unsigned generation = process_generation();
    if (call->is_read && read_here(direct, call)) return STATUS_OK;
    if (generation != process_generation()) { // a call would lend the same messages again
        return status_set(status, STATUS_ABORTED, "ABORTED",
                          "this process was forked in the middle of the read");
    }
    return direct->calls->call(direct->calls, call, status);
}

static void count_doubt(DirectChannel *direct, const Doubt *doubt)
{
    atomic_fetch_add_explicit(&direct->fallbacks[doubt->fallback], 1, memory_order_relaxed);
    if (doubt->fallback == TINE_FALLBACK_ASKS_SERVER || doubt->fallback == TINE_FALLBACK_FORKED) {
        return; // in a child of fork another thread may hold the mutex for ever
    }
    pthread_mutex_lock(&direct->mutex);
    snprintf(direct->last_why, sizeof(direct->last_why), "%s", doubt->why);
    pthread_mutex_unlock(&direct->mutex);
}

// Runs a read in this process. Returns false if it must be a call.
static bool read_here(DirectChannel *direct, ChannelCall *call)
{
    Doubt doubt = {.fallback = TINE_FALLBACK_FORKED};
    DirectStore *store = NULL;
    bool is_done = direct->generation == process_generation() &&
                   store_take(direct, call, &store, &doubt) && run(direct, store, call, &doubt);
    if (store) direct_store_leave(store);
    if (is_done) {
        atomic_fetch_add_explicit(&direct->reads, 1, memory_order_relaxed);
    } else {
        count_doubt(direct, &doubt);
    }
    return is_done;
}

// Takes the store that is the server's now and enters it. Returns false and why if there is none.
static bool store_take(DirectChannel *direct, const ChannelCall *call, DirectStore **out_store,
                       Doubt *out_doubt)
{
    int64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&direct->mutex);
    bool looks = now_ns >= direct->look_after_ns;
    if (looks) direct->look_after_ns = now_ns + LOOK_NS;
    unsigned serial = direct->calls->connection_serial(direct->calls, looks);
    DirectStore *store = direct->store;
    bool is_same = serial == direct->connection_serial;
    if (store && is_same && !direct_store_enter(store)) { // another client retired it
        direct_store_close(store);
        direct->store = store = NULL;
        direct->ask_after_ns = 0;
    }
    bool asks =
        (!store || !is_same) && !direct->is_asking && (!is_same || now_ns >= direct->ask_after_ns);
    if (asks) direct->is_asking = true;
    if (!store || !is_same) *out_doubt = direct->doubt;
    pthread_mutex_unlock(&direct->mutex);

    if (asks) return store_ask(direct, call, out_store, out_doubt);
    if (!store || !is_same) {
        if (!out_doubt->why[0]) {
            *out_doubt = (Doubt){TINE_FALLBACK_NO_SERVER, "the server is being asked"};
        }
        return false;
    }
    *out_store = store;
    if (direct_store_is_current(store, looks)) return true;
    *out_doubt = (Doubt){TINE_FALLBACK_REPLACED, "the store's file was replaced"};
    store_drop(direct, store, out_doubt);
    return false;
}

// Asks the server where its store is. Returns NULL if it does not say.
static Tine__V1__DescribeResponse *describe(DirectChannel *direct, const ChannelCall *call)
{
    Buffer request = {.bytes = NULL}, response = {.bytes = NULL};
    Tine__V1__DescribeResponse *described = NULL;
    RequestEnvelope envelope = {.method = slice_of(TINE_METHOD_DESCRIBE)};
    Error error = envelope_request_write(&request, &envelope, 0);
    ChannelCall asked = {
        .request = buffer_slice(&request),
        .is_read = true,
        .deadline_ns = call->deadline_ns,
        .connect_until_ns = call->connect_until_ns,
        .waits_at_first = call->waits_at_first,
        .response = &response,
    };
    Slice body;
    if (!error && direct->calls->call(direct->calls, &asked, NULL) == STATUS_OK &&
        status_of_response(buffer_slice(&response), NULL, &body) == STATUS_OK) {
        described = tine__v1__describe_response__unpack(NULL, body.size, body.bytes);
    }
    buffer_free(&request);
    buffer_free(&response);
    return described;
}

static bool store_ask(DirectChannel *direct, const ChannelCall *call, DirectStore **out_store,
                      Doubt *out_doubt)
{
    unsigned before = direct->calls->connection_serial(direct->calls, /* looks= */ false);
    Tine__V1__DescribeResponse *described = describe(direct, call);
    int64_t peer_user = direct->calls->peer_user(direct->calls);
    unsigned after = direct->calls->connection_serial(direct->calls, /* looks= */ false);
    bool is_one = after % 2 == 1 && after - before <= 1; // one connection all the time
    DirectStore *store = NULL;
    *out_doubt = (Doubt){TINE_FALLBACK_NO_SERVER, "the server did not say where its store is"};
    if (described && is_one) {
        DirectPlace place = {
            .said = described->direct_reads,
            .peer_user = peer_user,
            .instance_id = described->instance_id,
            .format = described->format_version,
            .clock = direct->clock,
            .map_bytes = direct->map_bytes,
        };
        (void)direct_store_open(&place, &store, out_doubt);
    }
    if (described) tine__v1__describe_response__free_unpacked(described, NULL);

    bool is_entered = store && direct_store_enter(store);
    if (store && !is_entered) {
        *out_doubt = (Doubt){TINE_FALLBACK_REPLACED, "the store was given up as it was opened"};
    }
    pthread_mutex_lock(&direct->mutex);
    DirectStore *old = direct->store;
    direct->store = store;
    direct->connection_serial = after;
    direct->is_asking = false;
    direct->ask_after_ns = clock_monotonic_ns() + RETRY_NS;
    if (!store) direct->doubt = *out_doubt;
    pthread_mutex_unlock(&direct->mutex);
    if (old) direct_store_close(old);
    *out_store = is_entered ? store : NULL;
    return is_entered;
}

// Gives up the store. The next read asks where the store is.
static void store_drop(DirectChannel *direct, DirectStore *store, const Doubt *doubt)
{
    direct_store_retire(store);
    pthread_mutex_lock(&direct->mutex);
    bool is_mine = direct->store == store;
    if (is_mine) {
        direct->store = NULL;
        direct->doubt = *doubt;
        direct->ask_after_ns = 0;
    }
    pthread_mutex_unlock(&direct->mutex);
    if (is_mine) direct_store_close(store);
}

// Takes an Rpc that was used before, with its arena, or a new one.
static Rpc *rpc_take(DirectChannel *direct)
{
    pthread_mutex_lock(&direct->mutex);
    Rpc *rpc = direct->kept_count > 0 ? direct->kept[--direct->kept_count] : NULL;
    pthread_mutex_unlock(&direct->mutex);
    if (rpc) return rpc;
    rpc = malloc(sizeof(Rpc));
    if (rpc) rpc_init(rpc);
    return rpc;
}

static void rpc_give(DirectChannel *direct, Rpc *rpc)
{
    pthread_mutex_lock(&direct->mutex);
    bool is_kept = direct->kept_count < RPCS_KEPT_MAX;
    if (is_kept) direct->kept[direct->kept_count++] = rpc;
    pthread_mutex_unlock(&direct->mutex);
    if (is_kept) return;
    rpc_free(rpc);
    free(rpc);
}

typedef struct Lending {
    const Lender *lender;
    Arena *arena;
    unsigned generation; // of the process that reads
    bool has_lent;
} Lending;

// Lends a message to the reader. If the reader forks, only the parent's transaction protects the
// pages, so in the child this message is the last one.
static Error lend(void *context, const Slice *pieces, size_t count, bool *out_is_enough)
{
    Lending *lending = context;
    TinePiece one, *lent_pieces = &one;
    if (count > 1) lent_pieces = arena_array(lending->arena, TinePiece, count);
    if (!lent_pieces) return ERROR_OUT_OF_MEMORY;
    TineLent lent = {.pieces = lent_pieces, .piece_count = count};
    for (size_t i = 0; i < count; i++) {
        lent_pieces[i] = (TinePiece){pieces[i].bytes, pieces[i].size};
        lent.size += pieces[i].size;
    }
    lending->has_lent = true;
    bool wants_more = lending->lender->read(lending->lender->context, &lent) &&
                      lending->generation == process_generation();
    *out_is_enough = *lending->lender->is_enough = !wants_more;
    return ERROR_NONE;
}

static TineFallback fallback_of(DirectStore *store, const Rpc *read)
{
    if (read->error != ERROR_UNAVAILABLE) return TINE_FALLBACK_STORE_ERROR;
    bool is_outgrown = store_is_outgrown(direct_store_of(store));
    return is_outgrown ? TINE_FALLBACK_MAP_GROWN : TINE_FALLBACK_READERS_FULL;
}

static bool run(DirectChannel *direct, DirectStore *store, ChannelCall *call, Doubt *out_doubt)
{
    Rpc *read = rpc_take(direct);
    if (!read) {
        *out_doubt = (Doubt){TINE_FALLBACK_STORE_ERROR, "there is no memory"};
        return false;
    }
    rpc_reset(read);
    read->request = call->request;
    read->submitted_ns = clock_monotonic_ns();
    read->reply = *call->response; // filled in place: the page is copied once
    read->keeps_reply = true;
    Lending lending = {
        .lender = call->lender, .arena = &read->arena, .generation = direct->generation};
    MessageSink sink = {.take = lend, .context = &lending};
    if (call->lender) read->sink = &sink;
    ReadOutcome outcome = reader_run(direct_store_of(store), read);
    if (outcome == READ_FAILED && lending.has_lent) { // a call would lend the same messages again
        dispatch_finish(read, read->error);
        outcome = READ_DONE;
    }
    *call->response = read->reply;
    read->reply = (Buffer){.bytes = NULL};
    if (direct->generation != process_generation()) { // the mutex may be held for ever
        rpc_free(read);
        free(read);
        *out_doubt = (Doubt){.fallback = TINE_FALLBACK_FORKED};
        return false;
    }
    if (outcome == READ_IS_FOR_SERVER) *out_doubt = (Doubt){.fallback = TINE_FALLBACK_ASKS_SERVER};
    if (outcome == READ_FAILED) {
        out_doubt->fallback = fallback_of(store, read);
        snprintf(out_doubt->why, sizeof(out_doubt->why), "%.255s",
                 read->detail.text[0] ? read->detail.text : error_text(read->error));
        if (out_doubt->fallback == TINE_FALLBACK_MAP_GROWN) {
            snprintf(out_doubt->why, sizeof(out_doubt->why), "the store outgrew the map");
            direct->map_bytes = 0;
            store_drop(direct, store, out_doubt);
        }
    }
    rpc_give(direct, read);
    return outcome == READ_DONE;
}

static Feed *direct_feed_open(Channel *channel)
{
    Channel *calls = ((DirectChannel *)channel)->calls;
    return calls->feed_open(calls);
}

static unsigned direct_connection_serial(Channel *channel, bool looks)
{
    Channel *calls = ((DirectChannel *)channel)->calls;
    return calls->connection_serial(calls, looks);
}

// A child of fork leaves the store as it is.
static void direct_close(Channel *channel)
{
    DirectChannel *direct = (DirectChannel *)channel;
    direct->calls->close(direct->calls);
    if (direct->generation == process_generation()) {
        if (direct->store) direct_store_close(direct->store);
        for (size_t i = 0; i < direct->kept_count; i++) {
            rpc_free(direct->kept[i]);
            free(direct->kept[i]);
        }
        pthread_mutex_destroy(&direct->mutex);
    }
    free(direct);
}

void channel_direct_stats(Channel *channel, TineClientStats *out_stats)
{
    DirectChannel *direct = (DirectChannel *)channel;
    out_stats->direct_reads = atomic_load_explicit(&direct->reads, memory_order_relaxed);
    for (size_t i = 0; i < TINE_FALLBACK_COUNT; i++) {
        out_stats->fallbacks[i] = atomic_load_explicit(&direct->fallbacks[i], memory_order_relaxed);
    }
    if (direct->generation != process_generation()) return;
    pthread_mutex_lock(&direct->mutex);
    out_stats->is_direct = direct->store != NULL;
    snprintf(out_stats->last_why, sizeof(out_stats->last_why), "%s", direct->last_why);
    pthread_mutex_unlock(&direct->mutex);
}

void channel_direct_for_test(Channel *channel, Clock clock, size_t map_bytes)
{
    DirectChannel *direct = (DirectChannel *)channel;
    direct->clock = clock;
    direct->map_bytes = map_bytes;
}
