// What is on the disk: new files, relaxed stores, and what a power cut leaves of them.
//
// LMDB without its flushes loses the store to a power cut: the disk writes pages in any order, and
// pages that the state on the disk still needs are used again. A relaxed store keeps one state
// whole. A read transaction, the pin, stands on the newest flushed state, so that none of its pages
// is used again. A flush pins the newest state, flushes data.mdb, writes that state's meta page
// to flushed.mdb, flushes that, and only then lets the pin before go. After a power cut the meta
// page is put back before LMDB opens the file.
//
// flushed.mdb has two places that are written in turn, each on a page of its own, with a sequence
// and a checksum: one that is torn leaves the other, whose state is pinned until the write is
// known to be on the disk. That is as safe as a new file renamed over the old one, costs one flush
// where that costs two, and leaves the directory alone, whose changes readers of other processes
// look for.
//
// A flush that fails is the last one, for what the kernel could not write it forgets: the newest
// flushed state is noted as another boot's, so that the next open puts it back in this boot too.

#pragma once

#include "kv/kv_lmdb.h"
#include "report/error_detail.h"

// Before LMDB opens the file: puts back the state that flushed.mdb has, if the machine went down
// since; sets kv->is_set_back and kv->was_relaxed. A data.mdb that was being made when the power
// went, and has nothing in it, is emptied. ERROR_CORRUPT: flushed.mdb is damaged, or data.mdb lacks
// what it had. ERROR_UNAVAILABLE: it would have to be put back, and the caller may not.
MUST_USE Error flush_recover(Kv *kv, const KvOptions *options, ErrorDetail *detail);

// After LMDB opened the file, before the first write: the file, if it is new, and its name are on
// the disk; what a process that died left unflushed, too, in either mode. Starts a relaxed store's
// flusher.
MUST_USE Error flush_start(Kv *kv, const KvOptions *options, ErrorDetail *detail);

// Flushes, and marks the store as closed in good order. No transaction may be open.
void flush_stop(Kv *kv);

// A commit has happened, of about so many bytes. Wakes the flusher if need be.
void flush_committed(KvFlusher *flusher, uint64_t txn_id, uint64_t bytes);

// There is no room: what a flush sets free may make some, so the next write begins with one.
void flush_want(KvFlusher *flusher);

// Before a write transaction: waits while too much is not flushed. ERROR_IO: a flush has failed.
MUST_USE Error flush_admit(KvFlusher *flusher);
