// Replays: stores the reply of a write in a small form, and makes a reply from it again.
//
// A receipt is stored as it is. Of a record (session, memory, todos, marker entry) only the IDs are
// stored, and the replay returns the record as it is at that time.

#pragma once

#include "rpc/rpc.h"

// Makes the small form of a reply's body, in the Rpc's arena. Returns ERROR_OUT_OF_MEMORY,
// ERROR_TOO_LONG.
MUST_USE Error replay_shrink(Rpc *rpc, Slice body, Slice *out);

// Makes the body from a small form and appends it to the Rpc's reply. Of a record that is gone it
// has only the IDs.
MUST_USE Error replay_expand(Rpc *rpc, Slice small);
