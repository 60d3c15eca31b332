// bench_grpc_server: GetSession by gRPC C++ on a Unix socket, from memory. The clients of other
// languages are measured against it.
//
//     bench_grpc_server SOCKET REPLY_FILE
//
// Answers with the GetSessionResponse whose bytes are in the file, until it is killed.

#include <stdio.h>

#include "grpc_peer.h"

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        fprintf(stderr, "usage: bench_grpc_server SOCKET REPLY_FILE\n");
        return 2;
    }
    grpc_serve(arguments[1], arguments[2]);
    return 0;
}
