// Replays: what is stored of a write's reply, and the reply made from it again.
//
// A receipt is stored as it is. Of a record (session, memory, todos, marker entry) only its ids are
// stored: the replay returns the record as it is by then.

#pragma once

#include "rpc/rpc.h"

// The small form of a reply body, in the call's arena.
MUST_USE Error replay_shrink(Rpc *rpc, Slice body, Slice *out);

// Appends the body made from a small form to the call's reply. A record that is gone by now is
// represented by its ids alone.
MUST_USE Error replay_expand(Rpc *rpc, Slice small);
