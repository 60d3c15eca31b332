// Flushing data.mdb: which state of it survives a power cut.
//
// LMDB without its flushes loses the store to a power cut: the disk writes pages in any order, and
// LMDB reuses pages that the state on the disk still needs. So one state is kept whole. A read
// transaction, the pin, reads the newest flushed state, so none of its pages is reused. A flush
// pins the newest state, flushes data.mdb, writes that state's meta page to flushed.mdb, flushes
// that, and only then ends the pin before. After a power cut the meta page is put back before LMDB
// opens the file (recovery.h), and the log is replayed on that state.
//
// A flush runs in the background, after a time or when many pages wait. It only bounds how much of
// the log is needed; commits are made durable by the log.
//
// flushed.mdb has two notes that are written in turn, each on a page of its own, with a sequence
// and a checksum. A torn note leaves the other, whose state stays pinned until the new note is
// known to be on the disk. That is as safe as a new file renamed over the old one, costs one flush
// instead of two, and does not change the directory, whose changes the readers of other processes
// watch.
//
// After a flush that failed nothing is flushed any more, because the kernel forgets pages that it
// could not write. The newest flushed state is noted as another boot's, so that the next open puts
// it back in this boot too.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Call it after LMDB opened the file, before the first write. Flushes a new file and its name, and
// what a dead process left unflushed. Starts the flusher, unless the file is read-only or
// ephemeral. ERROR_IO, ERROR_STORE_FULL, ERROR_OUT_OF_MEMORY, ERROR_CORRUPT; ERROR_UNAVAILABLE: no
// reader slot is free.
MUST_USE Error flush_start(DataFile *file, const DataFileOptions *options, ErrorDetail *detail);

// Flushes, marks the store as closed in good order, and ends the flusher. No transaction may be
// open.
void flush_stop(DataFile *file);

// Sets what is called after each flush, with the log's position that flush_committed named last
// when it began. Called on the thread that flushes.
void flush_on_flushed(DataFile *file, void (*flushed)(void *context, uint64_t position),
                      void *context);

// Returns when all that was committed before is in data.mdb on the disk: at once if there is no
// flusher. ERROR_IO: it may not be there, the store takes no more writes and must be closed.
// ERROR_UNAVAILABLE: the store was opened before a fork. `detail` has the cause.
MUST_USE Error flush_commits(DataFile *file, ErrorDetail *detail);

// Flushes even if nothing was committed. flush_has_failed says whether it failed.
void flush_again(DataFile *file);

// Returns whether a flush has failed. From then on write transactions are ERROR_IO.
bool flush_has_failed(const DataFile *file);

// Copies the cause of the flush that failed. Only after flush_has_failed returned true.
void flush_tell_failure(const DataFile *file, ErrorDetail *detail);

// Returns whether so much is not flushed that the next write transaction may have to wait.
bool flush_is_behind(const DataFile *file);

// The rest is for write transactions of a file that has a flusher.

// Notes a commit of about `bytes` bytes, which is the log's record `position`. Wakes the flusher if
// necessary.
void flush_committed(Flusher *flusher, uint64_t txn_id, uint64_t bytes, uint64_t position);

// Asks for a flush before the next write. A flush frees pages, which helps when there is no room.
void flush_want(Flusher *flusher);

// Waits while too much is not flushed. Call it before a write transaction. ERROR_IO: a flush has
// failed. `detail` has the cause.
MUST_USE Error flush_admit(Flusher *flusher, ErrorDetail *detail);
