// Checks a message before it is appended, as far as the types of its fields do not.
//
// Every stored message was checked, so reads do not check, and one bad message cannot make a
// listing fail.

#pragma once

#include "rpc/rpc.h"

// Fills in the defaults and checks the role, the fields that the kind requires, and every part.
// `field` names the message in the detail. Returns ERROR_INVALID_ARGUMENT, ERROR_INVALID_PART,
// ERROR_UNKNOWN_PART_KIND.
MUST_USE Error message_check(Rpc *rpc, const char *field, NewMessage *message);

// The same for a single part.
MUST_USE Error part_check(Rpc *rpc, const char *field, const Part *part);

// The same for a marker, of AddCompactionMarker (`is_cut_required`) or of an entry of kind
// COMPACTION.
MUST_USE Error marker_check(Rpc *rpc, const char *field, const Marker *marker,
                            bool is_cut_required);
