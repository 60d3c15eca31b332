// The feed of a store in this process: a queue of its engine.

#pragma once

#include "feed.h"
#include "rpc/engine.h"

// Listens to the engine's events from now on. Returns NULL if there is no memory. The caller closes
// the feed before the engine.
Feed *feed_local_open(Engine *engine);
