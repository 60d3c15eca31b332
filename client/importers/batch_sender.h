// Sends batches of entries to the store, several at a time.
//
// A batch goes with one AppendExchange: all of it is stored, or nothing. Originals that are too
// long for that follow with one request each. Two batches are under way at any time, so the store
// writes one while the next is sent and checked; a third is filled meanwhile. A batch that is sent
// before the one in front of it is answered names the head that it expects by that head's external
// id. If the store refuses it, it waits for the answer and is sent again below the ID from the
// answer.

#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "importers/importer.h"

enum {
    BATCH_COUNT_MAX = 512,
    BATCH_ARENA_BYTES = 512 * 1024 * 1024,
    BATCHES_UNDER_WAY = 2,
    BATCHES = BATCHES_UNDER_WAY + 1,
};

// Entries that follow each other, child after parent, as the store takes them.
typedef struct Batch {
    Arena arena;                       // of everything in the messages
    uint32_t entries[BATCH_COUNT_MAX]; // the importer's numbers for them
    NewMessage *messages[BATCH_COUNT_MAX];
    NewOriginal originals[BATCH_COUNT_MAX], *original_list[BATCH_COUNT_MAX];
    size_t count, line_bytes;

    char parent_id[STORE_ID_BYTES]; // of the first entry; "": it begins a history …
    bool is_below_previous;         // … but if this is set, the last entry of the batch before
    External *previous;             // external id of that entry; NULL: no batch is under way

    // The result.
    bool is_ended;
    int code; // a status code
    TineStatus status;
    AppendExchangeResponse *reply; // owned
} Batch;

typedef struct BatchSender {
    Tine *tine;
    TineCallOptions call;
    char *session; // borrowed
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t threads[BATCHES_UNDER_WAY];
    size_t thread_count;
    bool is_closing;
    Batch *batches;               // a ring of BATCHES; owned
    uint64_t taken;               // batches that the importer has taken back
    uint64_t begun;               // that a thread has begun to send
    uint64_t filled;              // that the importer has filled
    uint64_t stored;              // that are in the store, and all before them
    uint64_t failed;              // the first that failed; UINT64_MAX: none
    char last_id[STORE_ID_BYTES]; // of the last entry stored
} BatchSender;

// Starts no thread: the first batch that is sent does. `importer` and `session` (the store's ID)
// are borrowed. ERROR_OUT_OF_MEMORY.
MUST_USE Error batch_sender_open(BatchSender *sender, const Importer *importer, char *session);

// Waits for the batches that are under way. A zeroed sender is allowed.
void batch_sender_close(BatchSender *sender);

// Returns the batch that is being filled; there always is one.
Batch *batch_sender_filling(BatchSender *sender);

// Returns the batch that was sent last and not taken back yet; NULL if none is under way.
const Batch *batch_sender_last(const BatchSender *sender);

// Sends the batch that is being filled. batch_sender_is_full must be false. ERROR_OUT_OF_MEMORY: no
// thread can be started.
MUST_USE Error batch_sender_send(BatchSender *sender);
bool batch_sender_is_full(const BatchSender *sender);

// Waits until the oldest batch under way has ended and returns it; NULL if none is under way.
// batch_sender_release empties it for the next use.
Batch *batch_sender_take(BatchSender *sender);
void batch_sender_release(BatchSender *sender);
