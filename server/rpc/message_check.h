// Checking a message before it is appended: what the types of its fields cannot say.
//
// A message that is stored was checked, so a read never has to: one bad message can never poison a
// listing.

#pragma once

#include "rpc/rpc.h"

// Fills in the defaults and checks roles, the fields that the kind requires, and every part.
// `field` is the message's name in the request, for the error's text.
// ERROR_INVALID_ARGUMENT, ERROR_INVALID_PART, ERROR_UNKNOWN_PART_KIND.
MUST_USE Error message_check(Rpc *rpc, const char *field, NewMessage *message);

// A part alone, with its defaults. Errors as above.
MUST_USE Error part_check(Rpc *rpc, const char *field, const Part *part);

// A marker alone: of AddCompactionMarker (`is_cut_required`), or of an entry of kind COMPACTION.
MUST_USE Error marker_check(Rpc *rpc, const char *field, const Marker *marker,
                            bool is_cut_required);
