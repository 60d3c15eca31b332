// Histories: returns pages of all that a session sees, including the entries of its ancestors.

#pragma once

#include "store/message_scan.h"
#include "store/origin.h"

typedef struct MessageSink MessageSink;

// Receives the entries of a page, in place of a reply's buffer.
struct MessageSink {
    // The pieces, one after the other, are the encoded message. They borrow from the transaction,
    // the last one only until `take` returns. Sets `*out_is_enough` to end the page.
    Error (*take)(void *context, const Slice *pieces, size_t count, bool *out_is_enough);
    void *context;
    size_t from_bytes; // entries within the first bytes of the reply go into its buffer
};

typedef struct HistoryQuery {
    const SegmentList *segments; // of the whole history, newest first
    uint32_t kinds;              // bit 1 << kind for each kind to return
    bool is_newest_first;
    bool skips_open;
    Ulid skips_system_before; // leaves out SYSTEM turns older than this; zero: none
    Ulid after;               // returns entries strictly after this ID …
    Ulid before;              // … and strictly before this one; a page continues by moving one
    bool is_own_only;         // only entries of `session`
    Ulid session;
    uint32_t limit;          // UINT32_MAX: no limit
    size_t page_bytes;       // limit for the whole reply; a page has at least one record
    const MessageSink *sink; // NULL: all entries are appended to the reply
} HistoryQuery;

// Appends the entries that are not deleted to `out`, each as the content of the bytes field
// `field`. If `*out_has_more` is set, the next page continues at `*out_last`, the last entry looked
// at.
MUST_USE Error history_append_page(Txn *txn, const HistoryQuery *query, uint32_t field, Buffer *out,
                                   bool *out_has_more, Ulid *out_last);

// Returns the kinds that a history has by default: CONVERSATION and INJECTED.
uint32_t history_kinds_default(void);
