// Listing the parts of a session by kind, name and call, from the index of parts: only messages
// that have a part in the answer are read.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct PartQuery {
    Ulid session;
    const PartKind *kinds; // none: all that are indexed
    size_t kind_count;
    Slice name;    // of the tool or the file, the extension's type; empty: any
    Slice call_id; // of the tool's use; empty: any
    uint32_t limit;
    size_t page_bytes; // of the whole reply
} PartQuery;

// A place among a session's parts: those are in the order of messages, then of parts.
typedef struct PartPosition {
    Ulid message;
    uint16_t index;
} PartPosition;

// Appends the parts behind `*position` (a zero message: from the beginning) to `out`, each as a
// FoundPart in the bytes field `field`. `*position` moves to the last one looked at; `out_more`
// says that the page ended first.
MUST_USE Error part_append_page(Txn *txn, const PartQuery *query, PartPosition *position,
                                bool *out_more, uint32_t field, Buffer *out);
