// Sending batches. The importer's thread fills batches and takes them back; BATCHES_UNDER_WAY
// threads send them. The counters taken <= begun <= filled say where each batch of the ring is.

#include "importers/batch_sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "os/thread.h"

// An entry is about as long as its line, so a long entry and its line need two requests.
enum { SENT_LINES_BYTES_MAX = REQUEST_BYTES_MAX / 4 };

static Batch *batch_at(const BatchSender *sender, uint64_t number)
{
    return &sender->batches[number % BATCHES];
}

Error batch_sender_open(BatchSender *sender, const Importer *importer, char *session)
{
    *sender = (BatchSender){
        .tine = importer->tine, .call = importer->call, .session = session, .failed = UINT64_MAX};
    sender->batches = calloc(BATCHES, sizeof(*sender->batches));
    if (!sender->batches) return ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < BATCHES; i++) {
        arena_init(&sender->batches[i].arena, BATCH_ARENA_BYTES);
    }
    pthread_mutex_init(&sender->mutex, NULL);
    pthread_cond_init(&sender->changed, NULL);
    return ERROR_NONE;
}

static void batch_empty(Batch *batch)
{
    if (batch->reply) protobuf_c_message_free_unpacked(&batch->reply->base, NULL);
    arena_reset(&batch->arena, BATCH_ARENA_BYTES);
    Arena arena = batch->arena; // which goes back to where it was: it points to itself
    memset(batch, 0, sizeof(*batch));
    batch->arena = arena;
}

void batch_sender_close(BatchSender *sender)
{
    if (!sender->batches) return;
    pthread_mutex_lock(&sender->mutex);
    sender->is_closing = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->mutex);
    for (size_t i = 0; i < sender->thread_count; i++)
        pthread_join(sender->threads[i], NULL);
    for (size_t i = 0; i < BATCHES; i++) {
        batch_empty(&sender->batches[i]);
        arena_free(&sender->batches[i].arena);
    }
    free(sender->batches);
    pthread_cond_destroy(&sender->changed);
    pthread_mutex_destroy(&sender->mutex);
    *sender = (BatchSender){.batches = NULL};
}

Batch *batch_sender_filling(BatchSender *sender)
{
    return batch_at(sender, sender->filled);
}

const Batch *batch_sender_last(const BatchSender *sender)
{
    return sender->filled > sender->taken ? batch_at(sender, sender->filled - 1) : NULL;
}

bool batch_sender_is_full(const BatchSender *sender)
{
    return sender->filled - sender->taken == BATCHES_UNDER_WAY;
}

// Returns the ID of the last entry of a batch that has been answered.
static const char *last_id(const Batch *batch)
{
    const AppendExchangeResponse *reply = batch->reply;
    return reply && reply->n_receipts > 0 ? reply->receipts[reply->n_receipts - 1]->id : "";
}

static bool are_lines_short(const Batch *batch)
{
    size_t bytes = 0;
    for (size_t i = 0; i < batch->count; i++)
        bytes += batch->originals[i].content.len;
    return bytes <= SENT_LINES_BYTES_MAX;
}

// Sends the lines of a batch whose entries are stored, one request for each.
static int send_lines(const BatchSender *sender, Batch *batch, const TineCallOptions *options)
{
    for (size_t i = 0; i < batch->count && i < batch->reply->n_receipts; i++) {
        if (batch->originals[i].content.len == 0) continue;
        PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
        CLEANUP(reply_freep) PutOriginalResponse *reply = NULL;
        request.message_id = batch->reply->receipts[i]->id;
        request.content = batch->originals[i].content;
        int code = tine_put_original(sender->tine, options, &request, &reply);
        if (code) return code;
    }
    return 0;
}

// Sends a batch. If `parent_id` is NULL, its parent is the head that `batch->previous` names.
static int send_batch(const BatchSender *sender, Batch *batch, char *parent_id)
{
    AppendExchangeRequest request = APPEND_EXCHANGE_REQUEST__INIT;
    TineCallOptions options = sender->call;
    options.out_status = &batch->status;
    request.session_id = sender->session;
    request.messages = batch->messages;
    request.n_messages = batch->count;
    bool has_lines = are_lines_short(batch);
    request.originals = batch->original_list;
    request.n_originals = has_lines ? batch->count : 0;
    if (batch->previous) {
        request.expected_head_case = APPEND_EXCHANGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_EXTERNAL;
        request.expected_head_external = batch->previous;
    }
    if (parent_id) {
        request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
        request.parent_id = parent_id;
    }
    int code = tine_append_exchange(sender->tine, &options, &request, &batch->reply);
    return code || has_lines ? code : send_lines(sender, batch, &options);
}

// Waits until the batches before this one are stored. Returns false if one of them failed.
static bool wait_for_previous(BatchSender *sender, uint64_t number, char out_id[STORE_ID_BYTES])
{
    pthread_mutex_lock(&sender->mutex);
    while (sender->stored < number && sender->failed >= number) {
        pthread_cond_wait(&sender->changed, &sender->mutex);
    }
    bool is_there = sender->stored == number;
    memcpy(out_id, sender->last_id, STORE_ID_BYTES);
    pthread_mutex_unlock(&sender->mutex);
    return is_there;
}

static int send_in_order(BatchSender *sender, Batch *batch, uint64_t number)
{
    if (!batch->previous) return send_batch(sender, batch, batch->parent_id);
    int code = send_batch(sender, batch, batch->is_below_previous ? NULL : batch->parent_id);
    if (code != STATUS_ABORTED) return code;
    char id[STORE_ID_BYTES];
    if (!wait_for_previous(sender, number, id)) return code; // the reason is that batch's
    if (batch->is_below_previous) memcpy(batch->parent_id, id, sizeof(id));
    batch->previous = NULL;
    return send_batch(sender, batch, batch->parent_id);
}

// Batches succeed in order only, because each expects the one before it.
static void note_end(BatchSender *sender, Batch *batch, uint64_t number, int code)
{
    batch->code = code;
    batch->is_ended = true;
    if (code == 0) {
        sender->stored = number + 1;
        snprintf(sender->last_id, sizeof(sender->last_id), "%s", last_id(batch));
    } else if (number < sender->failed) {
        sender->failed = number;
    }
    pthread_cond_broadcast(&sender->changed);
}

static void *sender_main(void *context)
{
    BatchSender *sender = context;
    pthread_mutex_lock(&sender->mutex);
    for (;;) {
        while (sender->begun == sender->filled && !sender->is_closing) {
            pthread_cond_wait(&sender->changed, &sender->mutex);
        }
        if (sender->begun == sender->filled) break;
        uint64_t number = sender->begun++;
        Batch *batch = batch_at(sender, number);
        pthread_mutex_unlock(&sender->mutex);
        int code = send_in_order(sender, batch, number);
        pthread_mutex_lock(&sender->mutex);
        note_end(sender, batch, number, code);
    }
    pthread_mutex_unlock(&sender->mutex);
    return NULL;
}

Error batch_sender_send(BatchSender *sender)
{
    while (sender->thread_count < BATCHES_UNDER_WAY) {
        Error error = thread_start(&sender->threads[sender->thread_count], sender_main, sender,
                                   "send batches", NULL);
        if (error && sender->thread_count == 0) return error;
        if (error) break; // one thread is enough
        sender->thread_count++;
    }
    pthread_mutex_lock(&sender->mutex);
    sender->filled++;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->mutex);
    return ERROR_NONE;
}

Batch *batch_sender_take(BatchSender *sender)
{
    if (sender->taken == sender->filled) return NULL;
    Batch *batch = batch_at(sender, sender->taken);
    pthread_mutex_lock(&sender->mutex);
    while (!batch->is_ended)
        pthread_cond_wait(&sender->changed, &sender->mutex);
    pthread_mutex_unlock(&sender->mutex);
    return batch;
}

void batch_sender_release(BatchSender *sender)
{
    batch_empty(batch_at(sender, sender->taken));
    sender->taken++;
}
