// Histories: pages of what a session sees, its ancestors' entries included.

#pragma once

#include "store/message_scan.h"
#include "store/origin.h"

typedef struct MessageSink MessageSink;

// Takes the entries of a page instead of a reply's buffer. The pieces, one behind the other, are
// the encoded message; they borrow from the transaction. False: enough.
struct MessageSink {
    bool (*take)(void *context, Arena *arena, const Slice *pieces, size_t count);
    void *context;
};

typedef struct HistoryQuery {
    const SegmentList *segments; // of the whole history; newest first
    uint32_t kinds;              // bit 1 << kind for each kind wanted
    bool is_newest_first;
    bool skips_open;
    Ulid after;       // entries strictly after it …
    Ulid before;      // … and strictly before it: the bounds, and where a page goes on
    bool is_own_only; // entries of `session` alone
    Ulid session;
    uint32_t limit;          // records; UINT32_MAX: none
    size_t page_bytes;       // of the whole reply; one record at least
    const MessageSink *sink; // NULL: entries are appended to the reply
} HistoryQuery;

// Appends the entries that are not deleted to `out`, each as the content of the bytes field
// `field`. If there are more, `out_last` is the last entry looked at: where the next page goes on.
MUST_USE Error history_append_page(Txn *txn, const HistoryQuery *query, uint32_t field, Buffer *out,
                                   bool *out_has_more, Ulid *out_last);

// Kinds by default: CONVERSATION and INJECTED.
uint32_t history_kinds_default(void);
