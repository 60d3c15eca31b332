// The writer. The thread that runs a batch has the writer's role. Only one thread has it at a time:
// the writer's own thread, or a caller's that would only sleep until its call is answered (two
// wake-ups cost more than a commit without a flush). A caller takes the role only if nothing is
// queued and the thread is not waiting for more calls, so simultaneous calls still share one
// commit.
//
// Failures: a handler that fails before its first put has changed nothing, and the batch goes on.
// If a handler fails after a put, or the transaction fails, the batch is aborted and its calls are
// run again one by one, so that no call fails because of another. A commit that fails for another
// reason than a full disk leaves the state of the file unknown: the store closes itself and the
// batch is not run again.

#include "rpc/writer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/thread.h"
#include "report/activity.h"
#include "report/log.h"
#include "report/log_limit.h"
#include "rpc/dispatch.h"
#include "rpc/replay.h"
#include "store/event.h"
#include "store/operation.h"
#include "store/purge.h"
#include "wire/envelope.h"

struct Writer {
    Store *store;
    WriterHooks hooks;
    pthread_t thread;

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t wakes;
    Rpc *first, *last;
    bool has_no_leaders;
    bool is_refusing;
    bool is_stopping;
    bool is_taken; // the role
    bool has_purges;
    size_t gather_count; // calls of the last batch, whose callers may soon call again
    WriterStats stats;

    int64_t last_batch_ns;

    // Used only by the thread that has the role.
    EventList events;   // of the open transaction
    bool purge_stopped; // a slice failed or must wait; it is tried again after the next write
};

typedef struct Batch {
    Rpc **calls;
    Error *errors;
    size_t count;
    bool is_closing; // the writer stops: it answers the queued calls and begins nothing else
} Batch;

static void *writer_main(void *context);
static void run_batch(Writer *writer, Batch *batch);
static void finish_batch(Writer *writer, Batch *batch);

Error writer_start(Store *store, const WriterHooks *hooks, ErrorDetail *detail, Writer **out)
{
    Writer *writer = calloc(1, sizeof(Writer));
    if (!writer) return ERROR_OUT_OF_MEMORY;
    writer->store = store;
    writer->hooks = *hooks;
    pthread_mutex_init(&writer->mutex, NULL);
    condition_init(&writer->wakes);
    Error error = thread_start(&writer->thread, writer_main, writer, "write", detail);
    if (error) {
        free(writer);
        return error;
    }
    *out = writer;
    return ERROR_NONE;
}

void writer_forbid_leaders(Writer *writer)
{
    pthread_mutex_lock(&writer->mutex); // the thread runs already
    writer->has_no_leaders = true;
    pthread_mutex_unlock(&writer->mutex);
}

void writer_stop(Writer *writer)
{
    if (!writer) return;
    pthread_mutex_lock(&writer->mutex);
    writer->is_stopping = true;
    pthread_cond_signal(&writer->wakes);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->wakes);
    pthread_mutex_destroy(&writer->mutex);
    event_list_free(&writer->events);
    free(writer);
}

void writer_refuse(Writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->is_refusing = true;
    Rpc *rpc = writer->first;
    writer->first = writer->last = NULL;
    writer->stats.queued_requests = writer->stats.queued_bytes = 0;
    pthread_mutex_unlock(&writer->mutex);
    while (rpc) {
        Rpc *next = rpc->next;
        Error error =
            rpc_fail(rpc, ERROR_UNAVAILABLE, "the server is shutting down; nothing was stored");
        writer->hooks.finish(rpc, error);
        rpc = next;
    }
}

static bool is_idle(const Writer *writer)
{
    return !writer->is_taken && !writer->first && writer->gather_count <= 1 &&
           !writer->has_purges && !writer->is_stopping && !writer->is_refusing;
}

// Gives the role back, and wakes the thread if there is work for it.
static void give_role(Writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->is_taken = false;
    if (writer->first || writer->has_purges || writer->is_stopping) {
        pthread_cond_signal(&writer->wakes);
    }
    pthread_mutex_unlock(&writer->mutex);
}

Error writer_run(Writer *writer, Rpc *rpc)
{
    pthread_mutex_lock(&writer->mutex);
    bool is_leader =
        !writer->has_no_leaders && is_idle(writer) && rpc->request.size <= BATCH_BYTES_MAX;
    if (is_leader) writer->is_taken = true;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_leader) return writer_submit(writer, rpc);

    Error error;
    Batch batch = {.calls = &rpc, .errors = &error, .count = 1};
    run_batch(writer, &batch);
    give_role(writer);
    finish_batch(writer, &batch);
    return ERROR_NONE;
}

Error writer_submit(Writer *writer, Rpc *rpc)
{
    Error error = ERROR_NONE;
    pthread_mutex_lock(&writer->mutex);
    if (writer->is_stopping || writer->is_refusing) {
        error = rpc_fail(rpc, ERROR_UNAVAILABLE, "the server is shutting down");
    } else if (writer->stats.queued_requests >= QUEUE_REQUESTS_MAX ||
               writer->stats.queued_bytes + rpc->request.size > QUEUE_BYTES_MAX) {
        error = ERROR_QUEUE_FULL;
    } else {
        rpc->next = NULL;
        if (writer->last) {
            writer->last->next = rpc;
        } else {
            writer->first = rpc;
        }
        writer->last = rpc;
        writer->stats.queued_requests++;
        // The writer sleeps until the first call, or until the number it expects has arrived.
        size_t queued = writer->stats.queued_requests;
        if (queued == 1 || queued == writer->gather_count) pthread_cond_signal(&writer->wakes);
        writer->stats.queued_bytes += rpc->request.size;
    }
    pthread_mutex_unlock(&writer->mutex);
    return error;
}

void writer_resume_purges(Writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->has_purges = true;
    pthread_cond_signal(&writer->wakes);
    pthread_mutex_unlock(&writer->mutex);
}

void writer_stats(Writer *writer, WriterStats *out)
{
    pthread_mutex_lock(&writer->mutex);
    *out = writer->stats;
    pthread_mutex_unlock(&writer->mutex);
}

// Waits a moment for the callers that the last batch has just answered, so that their next calls
// share a commit, and the first of them does not get one alone. With 64 callers a commit then has
// 60 calls instead of 36. Does not wait for a single caller, and waits at most a quarter of the
// time of the last batch.
static void gather_company(Writer *writer)
{
    if (writer->gather_count <= 1) return;
    int64_t until_ns = clock_monotonic_ns() + writer->last_batch_ns / 4;
    while (!writer->is_stopping && writer->stats.queued_requests < writer->gather_count) {
        if (!condition_wait(&writer->wakes, &writer->mutex, until_ns)) return;
    }
}

// Waits for work and for the role. The mutex must be held.
static void wait_for_work(Writer *writer)
{
    while (writer->is_taken || !(writer->first || writer->has_purges || writer->is_stopping)) {
        pthread_cond_wait(&writer->wakes, &writer->mutex);
    }
}

// Takes the role and the queued calls, up to the bounds of a batch; a large call makes a batch
// alone. The batch may be empty when purges are pending. Returns false if the writer stops and
// nothing is left.
static bool take_batch(Writer *writer, Batch *batch)
{
    batch->count = 0;
    size_t bytes = 0;
    pthread_mutex_lock(&writer->mutex);
    gather_company(writer);
    writer->gather_count = 0;
    wait_for_work(writer);
    writer->is_taken = true;
    while (writer->first && batch->count < BATCH_REQUESTS_MAX) {
        Rpc *rpc = writer->first;
        if (batch->count > 0 && bytes + rpc->request.size > BATCH_BYTES_MAX) break;
        bytes += rpc->request.size;
        writer->first = rpc->next;
        if (!writer->first) writer->last = NULL;
        rpc->next = NULL;
        batch->calls[batch->count++] = rpc;
        writer->stats.queued_requests--;
        writer->stats.queued_bytes -= rpc->request.size;
    }
    writer->gather_count = batch->count;
    batch->is_closing = writer->is_stopping;
    bool goes_on = batch->count > 0 || !writer->is_stopping;
    pthread_mutex_unlock(&writer->mutex);
    return goes_on;
}

// Answers a call whose operation_id is stored with the reply that was stored for it.
static Error replay(Rpc *rpc, Txn *txn, bool *out_is_replayed)
{
    Slice small;
    Error error =
        operation_find(txn, rpc->operation_id, rpc->request_hash, out_is_replayed, &small);
    if (error || !*out_is_replayed) return error;
    error = buffer_reset(&rpc->reply, ENVELOPE_RESPONSE_GAP);
    if (error) return error;
    rpc->txn = txn;
    error = replay_expand(rpc, small);
    rpc->txn = NULL;
    return error;
}

static Error run_with_operation(Rpc *rpc, Txn *txn)
{
    bool is_replayed;
    Error error = replay(rpc, txn, &is_replayed);
    if (error || is_replayed) return error;
    error = dispatch_run(rpc, txn);
    if (error) return error;
    Slice small;
    error = replay_shrink(rpc, buffer_slice(&rpc->reply), &small);
    if (error) return error;
    return operation_put(txn, rpc->operation_id, rpc->request_hash, small);
}

// Runs one call of a batch. `*out_is_dirty`: it failed and may have changed something.
static Error run_call(Rpc *rpc, Txn *txn, bool *out_is_dirty)
{
    *out_is_dirty = false;
    if (!rpc->method->is_write) return ERROR_NONE; // a read that only waits for a flush
    rpc->detail.text[0] = '\0';
    if (clock_monotonic_ns() > rpc->deadline_ns) return ERROR_DEADLINE_EXCEEDED;
    size_t writes = kv_write_count(txn->kv), events = txn->events->count;
    txn_serve(txn, &rpc->arena, &rpc->detail, rpc->operation_id);
    bool is_remembered = rpc->operation_id.size > 0 && !rpc->stores_nothing;
    Error error = is_remembered ? run_with_operation(rpc, txn) : dispatch_run(rpc, txn);
    if (error) event_list_truncate(txn->events, events);
    *out_is_dirty = error && (kv_write_count(txn->kv) != writes || error_is_environment(error));
    return error;
}

static Error begin(Writer *writer, Arena *arena, ErrorDetail *detail, Txn *out)
{
    Error error = txn_begin(writer->store, /* is_write= */ true, arena, detail, out);
    out->events = &writer->events;
    event_list_truncate(&writer->events, 0);
    return error;
}

// Commits if anything was written, and reports the events, broadcast ones too.
static Error commit(Writer *writer, Txn *txn)
{
    bool has_writes = txn_has_writes(txn);
    activity = "commit";
    Error error = has_writes ? txn_commit(txn) : ERROR_NONE;
    activity = "";
    if (!error && (has_writes || writer->events.count > 0)) {
        writer->hooks.committed(writer->hooks.engine, &writer->events,
                                txn->state.last_event_sequence);
    }
    return error;
}

static void note_purges(Writer *writer, bool has_purges)
{
    pthread_mutex_lock(&writer->mutex);
    writer->has_purges = has_purges;
    pthread_mutex_unlock(&writer->mutex);
}

// Runs the calls [first, first + count) in one transaction. Returns false if nothing was stored and
// the calls may be run again.
static bool run_in_one(Writer *writer, Batch *batch, size_t first, size_t count)
{
    Txn txn;
    ErrorDetail detail;
    detail.text[0] = '\0';
    Error error = begin(writer, NULL, &detail, &txn);
    bool is_dirty = false;
    for (size_t i = first; !error && !is_dirty && i < first + count; i++) {
        batch->errors[i] = run_call(batch->calls[i], &txn, &is_dirty);
    }
    txn_set_detail(&txn, &detail); // a later failure is not the last call's
    if (!error && !is_dirty) error = commit(writer, &txn);
    bool has_purges = txn.notes_purge || writer->purge_stopped;
    txn_abort(&txn);
    if (!error && !is_dirty) {
        if (has_purges) note_purges(writer, true);
        return true;
    }
    if (error) {
        for (size_t i = first; i < first + count; i++) {
            batch->errors[i] = error;
            batch->calls[i]->detail = detail;
        }
    }
    return false;
}

// Ends the calls that do not wait for the disk, then flushes for those that do. A call must not be
// touched after it has ended.
static void finish_batch(Writer *writer, Batch *batch)
{
    size_t left = 0;
    for (size_t i = 0; i < batch->count; i++) {
        Rpc *rpc = batch->calls[i];
        if (!rpc->wants_sync || batch->errors[i]) {
            writer->hooks.finish(rpc, batch->errors[i]);
        } else {
            batch->calls[left++] = rpc;
        }
    }
    if (left == 0) return;
    ErrorDetail cause;
    Error error = store_flush(writer->store, &cause);
    for (size_t i = 0; i < left; i++) {
        Rpc *rpc = batch->calls[i];
        if (error) error = rpc_fail(rpc, error, "it may not be on the disk: %s", cause.text);
        writer->hooks.finish(rpc, error);
    }
}

// Runs a batch, with the role. Does not answer its calls.
static void run_batch(Writer *writer, Batch *batch)
{
    int64_t begun_ns = clock_monotonic_ns();
    bool is_done = run_in_one(writer, batch, 0, batch->count);
    bool is_rerun = !is_done && batch->count > 1 && !store_is_failed(writer->store);
    for (size_t i = 0; is_rerun && i < batch->count; i++) {
        (void)run_in_one(writer, batch, i, 1);
    }
    pthread_mutex_lock(&writer->mutex);
    writer->last_batch_ns = clock_monotonic_ns() - begun_ns;
    writer->stats.batches++;
    writer->stats.requests += batch->count;
    if (is_rerun) writer->stats.batches_rerun++;
    pthread_mutex_unlock(&writer->mutex);
}

// Returns whether purges must wait until the pages were walked; writer_resume_purges goes on. Both
// hold the mutex, so that the walk cannot end unnoticed in between.
static bool wait_for_walk(Writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->purge_stopped = store_is_walk_due(writer->store);
    if (writer->purge_stopped) writer->has_purges = false;
    pthread_mutex_unlock(&writer->mutex);
    return writer->purge_stopped;
}

// Runs one slice of the pending purges, in a transaction of its own. Returns whether more are
// pending.
static bool run_purge_slice(Writer *writer)
{
    Arena arena;
    ErrorDetail detail = {{0}};
    arena_init(&arena, RUN_BUDGET_BYTES);
    Txn txn;
    bool is_more = false;
    activity = "purge";
    Error error = begin(writer, &arena, &detail, &txn);
    if (!error) error = purge_slice(&txn, &is_more);
    if (!error) error = commit(writer, &txn);
    txn_abort(&txn);
    activity = "";
    arena_free(&arena);
    writer->purge_stopped = error != ERROR_NONE;
    if (!error) return is_more;
    // The note remains: the purge continues after the next write, or at the next start.
    static LogLimit limit;
    uint64_t left_out;
    if (log_limit_take(&limit, clock_monotonic_ns(), &left_out)) {
        log_write(LOG_ERROR, "purge stopped", "error=%s detail=\"%s\" left_out=%" PRIu64,
                  error_name(error), detail.text, left_out);
    }
    return false;
}

static void *writer_main(void *context)
{
    Writer *writer = context;
    Batch batch = {
        .calls = malloc(BATCH_REQUESTS_MAX * sizeof(Rpc *)),
        .errors = malloc(BATCH_REQUESTS_MAX * sizeof(Error)),
    };
    if (!batch.calls || !batch.errors) abort(); // a few kilobytes, at start-up
    // The last process may have left some.
    note_purges(writer, !store_options(writer->store)->is_read_only);
    while (take_batch(writer, &batch)) {
        if (batch.count > 0) run_batch(writer, &batch);
        finish_batch(writer, &batch);
        // A slice also follows a batch that added no purge, to retry one that failed.
        if (!batch.is_closing && !wait_for_walk(writer)) {
            note_purges(writer, run_purge_slice(writer));
        }
        give_role(writer);
    }
    free(batch.calls);
    free(batch.errors);
    return NULL;
}
