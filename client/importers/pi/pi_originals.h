// The originals of one session, read page by page in the order of its entries.

#pragma once

#include "importers/importer.h"

typedef struct PiOriginals {
    char session[STORE_ID_BYTES]; // "": there are none
    ListOriginalsResponse *page;  // owned
    size_t next;                  // in the page
} PiOriginals;

// Begins with the originals of `session`, an ID of the store; "" has none. Must be zeroed before
// its first use.
void pi_originals_begin(PiOriginals *originals, const char *session);
void pi_originals_end(PiOriginals *originals);

// Finds the original of an entry. Entries must be asked for in the order of the log. The caller
// frees `*out`; NULL: it has none. Returns a status code.
MUST_USE int pi_originals_take(PiOriginals *originals, Tine *tine, const TineCallOptions *call,
                               const char *entry, Original **out);

// Counts all of them. Returns a status code.
MUST_USE int pi_originals_count(const char *session, Tine *tine, const TineCallOptions *call,
                                uint64_t *out);
