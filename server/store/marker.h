// Markers: finds the place in a history where the model's view of it begins.
//
// A marker is an entry of kind COMPACTION. An index with the key (session, kind, message) finds the
// newest marker of a history without reading other entries. BuildContext also needs entries of kind
// SETTING, so they are in the index too.

#pragma once

#include "store/message.h"
#include "store/origin.h"

// Finds the cut-off of a marker that is appended after `parent` (zero: at the beginning). `*out` is
// zero with keep_all. It is ULID_MAX if the marker names no cut-off, which means that nothing
// before the marker is kept. ERROR_MESSAGE_NOT_FOUND, ERROR_INVALID_ARGUMENT: the cut-off is not in
// the history.
MUST_USE Error marker_cut_off(Txn *txn, const Marker *marker, Ulid parent, Ulid *out);

// Write and delete the index row of an entry. They do nothing for kinds that are not indexed.
MUST_USE Error marker_index_put(Txn *txn, Ulid session, MessageKind kind, Ulid message,
                                Ulid cut_off);
MUST_USE Error marker_index_delete(Txn *txn, Ulid session, MessageKind kind, Ulid message);

typedef struct MarkerPlace {
    bool is_found;
    Ulid session; // owner of `message`
    Ulid message;
    Ulid cut_off; // entries strictly after it are kept; the marker itself for ULID_MAX
} MarkerPlace;

// Returns whether a marker has parts: the system prompt as it was there.
MUST_USE Error marker_has_parts(Txn *txn, const MarkerPlace *marker, bool *out);

// Finds the newest entry of `kind` (COMPACTION or SETTING) in these segments that is older than
// `before`.
MUST_USE Error marker_newest(Txn *txn, const SegmentList *segments, MessageKind kind, Ulid before,
                             MarkerPlace *out);
