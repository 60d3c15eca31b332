// The vectors as JSON, one a line. A member is printed with what separates it from the one before.

#include "notation.h"
#include "vectors.h"

enum { REPEATED_BYTES_MIN = 64 };

static void print_name(FILE *out, const char *name)
{
    fprintf(out, "%s\"%s\": ", name[0] == 'n' ? "{" : ", ", name); // each begins with "name"
}

static void print_text(FILE *out, const char *name, const char *text)
{
    print_name(out, name);
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void print_hex(FILE *out, Slice bytes)
{
    fputc('"', out);
    for (size_t i = 0; i < bytes.size; i++)
        fprintf(out, "%02x", bytes.bytes[i]);
    fputc('"', out);
}

static void print_bytes(FILE *out, const char *name, const char *notation)
{
    Buffer bytes = {.bytes = NULL};
    notation_read(&bytes, notation);
    print_name(out, name);
    print_hex(out, buffer_slice(&bytes));
    buffer_free(&bytes);
}

static void print_ok(FILE *out, bool is_ok)
{
    print_name(out, "ok");
    fputs(is_ok ? "true" : "false", out);
}

// A long one is named by its byte, if it has but one.
static void print_payload(FILE *out, const char *notation)
{
    Buffer bytes = {.bytes = NULL};
    notation_read(&bytes, notation);
    Slice payload = buffer_slice(&bytes);
    size_t same = 0;
    while (same < payload.size && payload.bytes[same] == payload.bytes[0])
        same++;
    if (same == payload.size && same > REPEATED_BYTES_MIN) {
        fprintf(out, "{\"repeat\": \"%02x\", \"count\": %zu}", payload.bytes[0], payload.size);
    } else {
        print_hex(out, payload);
    }
    buffer_free(&bytes);
}

static void print_hello(FILE *out, size_t index)
{
    const HelloVector *vector = &HELLO_VECTORS[index];
    print_text(out, "name", vector->name);
    print_text(out, "client", vector->client);
    print_bytes(out, "hex", vector->bytes);
    print_ok(out, vector->is_ok);
    print_name(out, "protocol");
    if (vector->protocol < 0)
        fputs("null", out);
    else
        fprintf(out, "%d", vector->protocol);
    print_text(out, "why", vector->why);
}

static void print_frame(FILE *out, size_t index)
{
    const FrameVector *vector = &FRAME_VECTORS[index];
    print_text(out, "name", vector->name);
    print_text(out, "transport", vector->transport);
    print_bytes(out, "hex", vector->bytes);
    print_name(out, "payloads");
    fputc('[', out);
    for (size_t i = 0; i < FRAME_PAYLOADS_MAX && vector->payloads[i]; i++) {
        if (i > 0) fputs(", ", out);
        print_payload(out, vector->payloads[i]);
    }
    fputc(']', out);
    print_text(out, "then", vector->then);
    print_text(out, "why", vector->why);
}

static void print_request(FILE *out, size_t index)
{
    const RequestVector *vector = &REQUEST_VECTORS[index];
    Buffer bytes = {.bytes = NULL};
    request_vector_encode(vector, &bytes);
    print_text(out, "name", vector->name);
    print_text(out, "method", vector->method);
    print_text(out, "operation_id", vector->operation_id);
    print_name(out, "timeout_ms");
    fprintf(out, "%lld", (long long)vector->timeout_ms);
    print_text(out, "traceparent", vector->traceparent);
    print_text(out, "token", vector->token);
    print_bytes(out, "body", vector->body);
    print_name(out, "hex");
    print_hex(out, buffer_slice(&bytes));
    buffer_free(&bytes);
}

static void print_response(FILE *out, size_t index)
{
    const ResponseVector *vector = &RESPONSE_VECTORS[index];
    print_text(out, "name", vector->name);
    print_bytes(out, "hex", vector->bytes);
    print_ok(out, vector->is_ok);
    print_name(out, "code");
    fprintf(out, "%d", vector->code);
    print_text(out, "message", vector->message);
    print_text(out, "reason", vector->reason);
    print_bytes(out, "body", vector->body);
    print_text(out, "why", vector->why);
}

static void print_event(FILE *out, size_t index)
{
    const EventVector *vector = &EVENT_VECTORS[index];
    print_text(out, "name", vector->name);
    print_bytes(out, "hex", vector->bytes);
    print_ok(out, vector->is_ok);
    print_text(out, "topic", vector->topic);
    print_name(out, "sequence");
    fprintf(out, "%llu", (unsigned long long)vector->sequence);
    print_text(out, "type", vector->type);
    print_text(out, "session_id", vector->session_id);
    print_text(out, "why", vector->why);
}

static void print_list(FILE *out, const char *name, size_t count, void (*print)(FILE *, size_t))
{
    fprintf(out, "  \"%s\": [\n", name);
    for (size_t i = 0; i < count; i++) {
        fputs("    ", out);
        print(out, i);
        fprintf(out, "}%s\n", i + 1 < count ? "," : "");
    }
    fputs("  ]", out);
}

void vectors_print(FILE *out)
{
    fputs("{\n", out);
    print_list(out, "hellos", HELLO_VECTOR_COUNT, print_hello);
    fputs(",\n", out);
    print_list(out, "frames", FRAME_VECTOR_COUNT, print_frame);
    fputs(",\n", out);
    print_list(out, "requests", REQUEST_VECTOR_COUNT, print_request);
    fputs(",\n", out);
    print_list(out, "responses", RESPONSE_VECTOR_COUNT, print_response);
    fputs(",\n", out);
    print_list(out, "events", EVENT_VECTOR_COUNT, print_event);
    fputs("\n}\n", out);
}
