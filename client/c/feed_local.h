// The feed of a store in this process: a queue of its engine.

#pragma once

#include "feed.h"
#include "rpc/engine.h"

// Listens to the engine's events from now on. NULL: no memory; else the caller's, closed before
// the engine.
Feed *feed_local_open(Engine *engine);
