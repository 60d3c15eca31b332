// Batches of a file's entries, on their way into the store.
//
// Each goes with one AppendExchange: all of it or nothing; lines that are too long for that follow
// with a request each. Two are under way at any time, so that the store writes one while the next
// is sent and checked; a third is being filled meanwhile. A batch that is sent before the one in
// front of it is answered says which head it expects, by its external id. If that is refused it
// waits for the answer, and is sent again below the id that the answer has.

#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "cli.h"
#include "pi/pi_file.h"

enum {
    PI_BATCH_COUNT_MAX = 512,
    PI_BATCH_ARENA_BYTES = 512 * 1024 * 1024,
    PI_BATCHES_UNDER_WAY = 2,
    PI_BATCHES = PI_BATCHES_UNDER_WAY + 1,
};

// Entries that follow each other, child after parent, and what they are for the store.
typedef struct PiBatch {
    Arena arena; // of all that is in the messages
    uint32_t entries[PI_BATCH_COUNT_MAX];
    NewMessage *messages[PI_BATCH_COUNT_MAX];
    NewOriginal originals[PI_BATCH_COUNT_MAX], *original_list[PI_BATCH_COUNT_MAX];
    size_t count, line_bytes;

    char parent_id[PI_STORE_ID_BYTES]; // of the first; "": it begins a history …
    bool is_below_previous;            // … but here it is the last of the batch before
    External *previous;                // external id of that one; NULL: there is none under way

    // How it ended.
    bool is_ended;
    int code; // gRPC's
    TineStatus status;
    AppendExchangeResponse *reply; // owned
} PiBatch;

typedef struct PiSender {
    Tine *tine;
    TineCallOptions call;
    char *session; // borrowed
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t threads[PI_BATCHES_UNDER_WAY];
    size_t thread_count;
    bool is_closing;
    PiBatch *batches;                // a ring of PI_BATCHES; owned
    uint64_t taken;                  // batches that were handed back
    uint64_t begun;                  // that a thread has taken up
    uint64_t filled;                 // that were handed over
    uint64_t stored;                 // that are in the store, all before them too
    uint64_t failed;                 // the first that failed; UINT64_MAX: none
    char last_id[PI_STORE_ID_BYTES]; // of the last entry stored
} PiSender;

// Begins with no thread; the first batch that is handed over starts them. `session` is borrowed.
// ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_sender_open(PiSender *sender, const Cli *cli, char *session);
void pi_sender_close(PiSender *sender); // waits for what is under way; allowed on a zeroed one

// The batch that is being filled; there is always one.
PiBatch *pi_sender_filling(PiSender *sender);

// The batch that was handed over last and not handed back; NULL: nothing is under way.
const PiBatch *pi_sender_last(const PiSender *sender);

// Hands the batch that is being filled over. Needs pi_sender_is_full to be false. ERROR_IO: no
// thread can be started.
MUST_USE Error pi_sender_send(PiSender *sender);
bool pi_sender_is_full(const PiSender *sender);

// The oldest batch that is under way, when it has ended; NULL if there is none. It is handed back,
// empty, by pi_sender_release.
PiBatch *pi_sender_take(PiSender *sender);
void pi_sender_release(PiSender *sender);
