// tine_client_service: protobuf-c's service stubs on a client.

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "client.h"
#include "status.h"
#include "tine/v1/store.pb-c.h"
#include "tine_calls.h"

// protobuf-c gives each stub a pointer to the service, which is the first member.
typedef struct ClientService {
    ProtobufCService service;
    Tine *tine; // borrowed
    TineCallOptions options;
} ClientService;

static void service_invoke(ProtobufCService *service, unsigned method_index,
                           const ProtobufCMessage *request, ProtobufCClosure closure,
                           void *closure_data)
{
    ClientService *client = (ClientService *)service;
    const ProtobufCMethodDescriptor *method = &service->descriptor->methods[method_index];
    char path[METHOD_BYTES_MAX];
    snprintf(path, sizeof(path), "/%s/%s", service->descriptor->name, method->name);
    ProtobufCMessage *response = NULL;
    if (tine_method_is_stream(path)) { // protobuf-c has no streams
        char message[sizeof(client->options.out_status->message)];
        snprintf(message, sizeof(message), "%s is a stream: watch with tine_watch (tine.h)",
                 method->name);
        status_set(client->options.out_status, STATUS_UNIMPLEMENTED, "UNIMPLEMENTED", message);
        if (closure) closure(NULL, closure_data);
        return;
    }
    (void)tine_call(client->tine, &client->options, path, request, method->output, &response);
    if (closure) closure(response, closure_data);
    if (response) protobuf_c_message_free_unpacked(response, client->options.allocator);
}

static void service_destroy(ProtobufCService *service)
{
    free(service);
}

ProtobufCService *tine_client_service(Tine *tine, const TineCallOptions *options)
{
    ClientService *client = calloc(1, sizeof(ClientService));
    if (!client) return NULL;
    client->service.descriptor = &tine__v1__store_service__descriptor;
    client->service.invoke = service_invoke;
    client->service.destroy = service_destroy;
    client->tine = tine;
    if (options) client->options = *options;
    client->options.operation_id = NULL;
    return &client->service;
}
