// The servers that this program is itself.

#include "serve.h"

#include "peers.h"

#if BENCH_HAS_GRPC
#include "../systems/grpc_store.h"
#include "grpc_peer.h"
#endif

void serve(const char *kind, const char *socket, const char *argument)
{
    if (strcmp(kind, "raw") == 0) serve_raw_echo(socket);
    if (strcmp(kind, "nng") == 0) serve_nng_echo(socket);
#if BENCH_HAS_GRPC
    if (strcmp(kind, "grpc") == 0) grpc_serve(socket, argument);
    if (strcmp(kind, "grpc-sqlite") == 0) serve_grpc_sqlite(socket, argument);
#else
    (void)argument;
#endif
}
