// gRPC C++ with nothing behind it: what a unary call costs by it. The reply is a session's record
// of tine's size, which is kept in the server's memory, already decoded.

#include <stdio.h>
#include <stdlib.h>

#include "echo_sizes.h"
#include "grpc_peer.h"
#include "tine_calls.h"

enum { REPLY_BYTES_MAX = 4096 };

// A record whose preview is so long that the reply has tine's size.
static size_t reply_of_size(size_t size, uint8_t *out)
{
    char preview[REPLY_BYTES_MAX] = "";
    ModelRef model = MODEL_REF__INIT;
    model.provider = (char *)(uintptr_t)MODEL_PROVIDER;
    model.name = (char *)(uintptr_t)MODEL_NAME;
    Totals totals = TOTALS__INIT;
    totals.input_tokens = USAGE_INPUT;
    totals.output_tokens = USAGE_OUTPUT;
    totals.cost_nano_usd = USAGE_COST_NANO_USD;
    Session session = SESSION__INIT;
    session.id = (char *)(uintptr_t) "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    session.slug = (char *)(uintptr_t) "long";
    session.project_dir = (char *)(uintptr_t)PROJECT_DIR;
    session.model = &model;
    session.totals = session.own_totals = &totals;
    session.first_message_preview = preview;
    GetSessionResponse reply = GET_SESSION_RESPONSE__INIT;
    reply.session = &session;
    for (size_t i = 0; protobuf_c_message_get_packed_size(&reply.base) < size; i++) {
        require(i + 1 < sizeof(preview), "a record of %zu bytes", size);
        preview[i] = 'x';
    }
    return protobuf_c_message_pack(&reply.base, out);
}

static void memory_start(Place *place)
{
    uint8_t reply[2 * REPLY_BYTES_MAX];
    size_t size = reply_of_size(echo_of_get().reply_bytes, reply);
    char path[PLACE_BYTES_MAX + 8];
    snprintf(path, sizeof(path), "%s/reply", place->directory);
    FILE *file = fopen(path, "w");
    require(file && fwrite(reply, 1, size, file) == size && fclose(file) == 0, "cannot write %s",
            path);
    peer_start(&place->server, "grpc", path);
}

static void memory_stop(Place *place)
{
    peer_stop(&place->server);
}

static void *memory_connect(const Place *place)
{
    return grpc_open(place->server.socket);
}

static void memory_disconnect(void *client)
{
    grpc_close(client);
}

static void memory_get_session(void *client, const Id *session)
{
    require(grpc_get_session(client, session->text) > 0, "gRPC: GetSession");
}

SYSTEM(grpc_memory) = {
    .name = "grpc-memory",
    .about = "gRPC C++ over a Unix socket, GetSession answered from memory",
    .order = 23,
    .is_limit = true,
    .start = memory_start,
    .stop = memory_stop,
    .connect = memory_connect,
    .disconnect = memory_disconnect,
    .fill_open = echo_fill_open,
    .fill_close = echo_fill_close,
    .create_session = echo_create,
    .append = echo_count,
    .get_session = memory_get_session,
};
