// Markers: where the model's view of a history begins.
//
// A marker is an entry of kind COMPACTION. An index (session, kind, message) finds the newest one
// of a history without reading the entries between; SETTING entries are in it too, for
// BuildContext.

#pragma once

#include "store/message.h"
#include "store/origin.h"

// The cut-off of a marker that is appended after `parent` (zero: at the beginning): zero with
// keep_all, ULID_MAX if the marker names none (then nothing before it is kept).
// ERROR_MESSAGE_NOT_FOUND, ERROR_INVALID_ARGUMENT: the cut-off is not in the history.
MUST_USE Error marker_cut_off(Txn *txn, const Marker *marker, Ulid parent, Ulid *out);

// Writes and deletes the index row of an entry; nothing for kinds that have none.
MUST_USE Error marker_index_put(Txn *txn, Ulid session, MessageKind kind, Ulid message,
                                Ulid cut_off);
MUST_USE Error marker_index_delete(Txn *txn, Ulid session, MessageKind kind, Ulid message);

typedef struct MarkerPlace {
    bool is_found;
    Ulid session; // that owns it
    Ulid message;
    Ulid cut_off; // entries strictly after it are live; ULID_MAX was resolved to the marker itself
} MarkerPlace;

// The newest entry of `kind` (COMPACTION or SETTING) in these segments that is older than `before`.
MUST_USE Error marker_newest(Txn *txn, const SegmentList *segments, MessageKind kind, Ulid before,
                             MarkerPlace *out);
