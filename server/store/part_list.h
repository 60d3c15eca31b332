// Part listing: returns pages of a session's parts by kind, name and call. Uses the index of parts,
// so that only messages with a matching part are read.

#pragma once

#include "names.h"
#include "store/store.h"

typedef struct PartQuery {
    Ulid session;
    const PartKind *kinds; // none: all kinds that are indexed
    size_t kind_count;
    Slice name;    // of the tool or file, or the extension's type; empty: any
    Slice call_id; // ID of the tool use; empty: any
    uint32_t limit;
    size_t page_bytes; // limit for the whole reply
} PartQuery;

// A position among the parts of a session, which are sorted by message, then by index.
typedef struct PartPosition {
    Ulid message;
    uint16_t index;
} PartPosition;

// Appends the matching parts after `*position` (zero message: from the beginning) to `out`, each as
// a FoundPart in the bytes field `field`. Moves `*position` to the last part looked at. Sets
// `*out_more` if the page ended before the parts did.
MUST_USE Error part_append_page(Txn *txn, const PartQuery *query, PartPosition *position,
                                bool *out_more, uint32_t field, Buffer *out);
