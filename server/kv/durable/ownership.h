// Ownership: notices that another process has written to data.mdb, or that data.mdb was moved,
// removed or cut short, while this process has it open for writing.
//
// Two writers are kept apart by the locks of the directory. This is for the case that a lock was
// removed or went unasked. Each process has ids, sequences and counters in memory that the other
// does not see change, so the second write would damage the store without an error.
//
// After the first finding the file takes no more writes: ownership_is_lost stays true, and every
// later check returns ERROR_IO with the first cause. The finding is logged once.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Remembers the file as LMDB has just opened it. Returns errno or a code of LMDB. ownership_end
// frees what it holds, also after a failure.
MUST_USE int ownership_begin(DataFile *file, const DataFileOptions *options);
void ownership_end(DataFile *file);

// Checks that the name data.mdb still leads to the open file, and that the file has not become
// shorter. Costs one system call and does not read the map, which would be SIGBUS in a file that
// was cut short. Any thread may call it. Finds nothing wrong with a store that nobody keeps
// (no_sync), because such a file has no name. ERROR_IO.
MUST_USE Error ownership_check_name(DataFile *file, ErrorDetail *detail);

// For the thread that holds LMDB's writer lock, with the number of its transaction. The first
// checks that the transaction follows the last one of this process: call it when the transaction
// has begun. The second does so again and notes that the transaction is about to be committed.
// ERROR_IO.
MUST_USE Error ownership_check_txn(DataFile *file, uint64_t txn_id, ErrorDetail *detail);
MUST_USE Error ownership_note_commit(DataFile *file, uint64_t txn_id, ErrorDetail *detail);

// Takes the note back: the commit has failed. Any thread may call it.
void ownership_forget_commit(DataFile *file, uint64_t txn_id);

// Returns whether a check has failed.
bool ownership_is_lost(const DataFile *file);

// Copies the cause. Only after ownership_is_lost returned true.
void ownership_tell_loss(const DataFile *file, ErrorDetail *detail);
