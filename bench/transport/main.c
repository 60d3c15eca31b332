// bench_transport: tined and libtine over sockets, beside raw sockets, libnng and gRPC C++.
//
//     bench_transport [--quick] [--only NAME] [--directory DIR] [--against TINED]
//
// With --against it measures nothing but two tineds side by side, this build's and that one.

#include <stdlib.h>

#include "grpc_peer.h"
#include "rows.h"

#if !BENCH_HAS_GRPC
bool grpc_is_there(void)
{
    return false;
}
#endif

void serve_grpc(const char *socket, const char *reply_file)
{
#if BENCH_HAS_GRPC
    grpc_serve(socket, reply_file);
#else
    (void)reply_file;
    require(false, "built without gRPC: %s is not served", socket);
#endif
}

static void serve(const char *kind, const char *socket, const char *argument)
{
    if (strcmp(kind, "raw") == 0) serve_raw_echo(socket);
    if (strcmp(kind, "nng") == 0) serve_nng_echo(socket);
    if (strcmp(kind, "grpc") == 0) serve_grpc(socket, argument);
    serve_harm(kind, socket, argument);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--serve") == 0) {
        serve(argv[2], argv[3], argv[4]);
        return 1;
    }
    Options options;
    options_begin(argc, argv, &options);
    if (options.against) {
        bench_against(&options);
    } else {
        bench_get_session(&options);
        bench_history(&options);
        bench_append(&options);
        bench_hostile(&options);
        bench_idle(&options);
        bench_cli(&options);
    }
    options_end(&options);
    return 0;
}
