// Reader slots: the entries of lock.mdb. Each read transaction, of any process, has one. A slot
// names the snapshot that is read, and no page of that snapshot is reused while the slot is taken.

#pragma once

#include "kv/durable/options.h"

// Returns how many slots a file has beside those that the options ask for: the flusher pins the
// state before and the new one. An ephemeral file has no flusher.
static inline unsigned reader_slots_of_pins(bool is_ephemeral)
{
    return is_ephemeral ? 0 : 2;
}

typedef struct ReaderSlots {
    unsigned count;      // in use
    uint64_t oldest_txn; // the oldest snapshot that is read; 0: there are no readers
    long oldest_pid;     // the process that reads it; 0: likewise
} ReaderSlots;

// Clears the slots of processes that have died. Returns how many there were.
unsigned reader_slots_clear_dead(DataFile *file);

// Reads which slots are in use. The flusher's pin is left out.
void reader_slots_survey(DataFile *file, ReaderSlots *out);
