// The servers that this program is itself.

#include "serve.h"

#include "peers.h"

void serve(const char *kind, const char *socket, const char *argument)
{
    if (strcmp(kind, "raw") == 0) serve_raw_echo(socket);
    if (strcmp(kind, "nng") == 0) serve_nng_echo(socket);
    (void)argument;
}
