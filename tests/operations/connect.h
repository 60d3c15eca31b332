// How the fixture's client reaches its engine. $TINE_TEST_CHANNEL says: `local` (or unset), with
// nothing between; `sp`, `nng` or `tcp`, through the daemon's transport and a real socket, with
// our own SP peer, libnng on ipc, or libnng on tcp with a token; `direct`, as `sp`, but reads are
// direct ones of another process (reader.h).

#pragma once

#include "rpc/engine.h"
#include "tine.h"

typedef struct Transport Transport;

// Before the engine is opened, while there is one thread: `clock` is the engine's.
void connect_prepare(Clock clock);

// `*out_transport` is NULL for `local`.
void connect_engine(Engine *engine, Transport **out_transport, Tine **out_tine);

// Closes client, transport and engine.
void disconnect_engine(Engine *engine, Transport *transport, Tine *tine);
