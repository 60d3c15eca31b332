// Fuzzes the command line's JSON: a byte for the type, then the text. What is read must come back
// the same from what is written of it.

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_message.h"
#include "text/json.h"
#include "tine/v1/store.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "json_fuzz: %s\n", what);
    abort();
}

static ProtobufCMessage *read_again(const char *text, size_t size,
                                    const ProtobufCMessageDescriptor *type)
{
    ErrorDetail detail = {{0}};
    ProtobufCMessage *message = NULL;
    require(json_is_valid(slice(text, size), NULL), "what was written is no JSON");
    require(json_message_read(slice(text, size), type, &detail, &message) == ERROR_NONE,
            "what was written cannot be read");
    return message;
}

static void require_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    size_t size = protobuf_c_message_get_packed_size(a);
    require(protobuf_c_message_get_packed_size(b) == size, "it came back with another size");
    uint8_t *bytes = malloc(2 * size + 1);
    require(bytes != NULL, "out of memory");
    protobuf_c_message_pack(a, bytes);
    protobuf_c_message_pack(b, bytes + size);
    require(memcmp(bytes, bytes + size, size) == 0, "it came back changed");
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCServiceDescriptor *service = &tine__v1__store_service__descriptor;
    if (size == 0) return 0;
    const ProtobufCMethodDescriptor *method = &service->methods[(*data >> 1) % service->n_methods];
    const ProtobufCMessageDescriptor *type = *data & 1 ? method->output : method->input;
    ErrorDetail detail = {{0}};
    ProtobufCMessage *message = NULL;
    Error error = json_message_read(slice(data + 1, size - 1), type, &detail, &message);
    require((error == ERROR_NONE) == (message != NULL), "an error and a message");
    require(error == ERROR_NONE || detail.text[0], "an error without a word");
    if (error) return 0;

    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    require(out != NULL, "out of memory");
    json_message_write(out, message, size % 2 ? JSON_LINE : JSON_PRETTY);
    require(fclose(out) == 0, "out of memory");
    ProtobufCMessage *again = read_again(text, text_bytes, type);
    require_same(message, again);
    protobuf_c_message_free_unpacked(message, NULL);
    protobuf_c_message_free_unpacked(again, NULL);
    free(text);
    return 0;
}
