// Calls of tined, and echoes, as ways.

#include "calls.h"

#include <stdio.h>

#include "channel_sp.h"
#include "wire/envelope.h"

Tine *tine_of(const Peer *peer, const char *scheme)
{
    char url[SOCKET_BYTES_MAX + 16];
    snprintf(url, sizeof(url), "%s://%s", scheme, peer->socket);
    Tine *tine;
    TineStatus status;
    TineOpenOptions options = {.wait_for_server = true};
    require(tine_open_with(url, &options, &status, &tine) == 0, "%s", status.message);
    return tine;
}

void get_call(void *context)
{
    const GetCall *get = context;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)get->session;
    GetSessionResponse *response;
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    require(tine_get_session(get->tine, &options, &request, &response) == 0, "GetSession: %s",
            status.message);
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

AppendMessageRequest *append_message_of(const Buffer *request)
{
    RequestEnvelope envelope;
    Slice body;
    require(envelope_request_read(buffer_slice(request), &envelope, &body), "a malformed request");
    AppendMessageRequest *append =
        tine__v1__append_message_request__unpack(NULL, body.size, body.bytes);
    require(append != NULL, "a request cannot be decoded");
    return append;
}

void append_by_libtine(Tine *tine, const AppendMessageRequest *request, const char *operation_id)
{
    TineStatus status;
    TineCallOptions options = {.operation_id = operation_id, .out_status = &status};
    AppendMessageResponse *response;
    require(tine_append_message(tine, &options, request, &response) == 0, "an append: %s",
            status.message);
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

Channel *sp_channel_of(const Peer *peer)
{
    Channel *channel;
    TineStatus status;
    require(channel_sp_open(peer->socket, &status, &channel) == 0, "%s", status.message);
    return channel;
}

void channel_way_call(void *context)
{
    ChannelWay *way = context;
    Buffer response = {.bytes = NULL};
    TineStatus status;
    ChannelCall call = {.request = way->request, .deadline_ns = INT64_MAX, .response = &response};
    require(way->channel->call(way->channel, &call, &status) == 0, "a call: %s", status.message);
    way->reply_bytes = buffer_size(&response);
    buffer_free(&response);
}

void echo_way_call(void *context)
{
    EchoWay *way = context;
    if (way->raw) {
        raw_echo_call(way->raw, way->request_bytes, way->reply_bytes);
    } else {
        nng_echo_call(way->nng, way->request_bytes, way->reply_bytes);
    }
}
