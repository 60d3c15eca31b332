// The meta pages of data.mdb: LMDB's two roots of everything, written in turn. A flush keeps the
// one of the state that it flushed, and recovery writes it back.

#pragma once

#include "kv/durable/flush_note.h"

// Copies the meta page of the state note->txn_id from data.mdb into `note`, with the hash of that
// state's root pages. Returns errno; EPROTO: the file has not the layout that is known here.
MUST_USE int meta_page_take(int data_file, size_t page_bytes, FlushNote *note);

// Reads whether data.mdb has the root pages of the note's state. Returns errno.
MUST_USE int meta_page_find_roots(int data_file, const FlushNote *note, bool *out_is_there);

// Makes the note's state the state of data.mdb, and flushes. May be repeated after a power cut.
// Returns errno.
MUST_USE int meta_page_put_back(int data_file, const FlushNote *note);

// Returns whether the making of data.mdb was cut off, so that it has not even LMDB's two meta
// pages.
bool meta_page_is_unfinished(int data_file);
