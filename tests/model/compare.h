// Comparing what the store tells with the model.

#pragma once

#include "content.h"

// All of a session: its record, its history in every form, its records. `is_full`: every listing;
// otherwise some of them.
void compare_session(Run *run, ModelSession *session, bool is_full);

// The parts of its own entries, by random filters.
void compare_parts(Run *run, ModelSession *session);
void compare_originals(Run *run, ModelSession *session);

// Listings of sessions, by random filters.
void compare_listing(Run *run);
void compare_resolve(Run *run);

// The ledger's sums, by random groups and filters.
void compare_cost(Run *run);

// The events since the last comparison.
void compare_events(Run *run);

// Reads all pages of a listing, of random sizes. Returns its records and the first response.
typedef struct Pages {
    ProtobufCMessage **records;
    size_t count;
    ProtobufCMessage *first;
} Pages;

Pages compare_read_pages(Run *run, RunMethod method, ProtobufCMessage *request, size_t expected);

// Where a read looks from: the head, or at times any entry of the tree, which `*out_through` names
// then, in scratch memory. An entry that is not in the tree must be refused.
Entry *compare_random_leaf(Run *run, ModelSession *session, char **out_through);

// Whether a listing by kinds (none: CONVERSATION and INJECTED) shows an entry.
bool compare_kind_is_listed(const MessageKind *kinds, size_t count, MessageKind kind);
