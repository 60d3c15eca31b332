// The envelope: what one end writes the other reads, and what is malformed is refused.

#include "wire/envelope.h"

#include "harness.h"

static const RequestEnvelope FULL = {
    .timeout_ms = 1500,
    .sync = true,
};

static RequestEnvelope full(void)
{
    RequestEnvelope envelope = FULL;
    envelope.method = slice_of("/a.B/C");
    envelope.operation_id = slice_of("op-1");
    envelope.traceparent = slice_of("00-trace");
    envelope.token = slice_of("secret");
    return envelope;
}

TEST(a_request_is_read_as_it_was_written)
{
    CLEANUP(buffer_free) Buffer request = {.bytes = NULL};
    RequestEnvelope envelope = full(), read;
    Slice body;
    CHECK_EQ(envelope_request_write(&request, &envelope, 4), ERROR_NONE);
    CHECK_EQ(buffer_append(&request, slice_of("body")), ERROR_NONE);
    CHECK(envelope_request_read(buffer_slice(&request), &read, &body));
    CHECK_BYTES(read.method, envelope.method);
    CHECK_BYTES(read.operation_id, envelope.operation_id);
    CHECK_BYTES(read.traceparent, envelope.traceparent);
    CHECK_BYTES(read.token, envelope.token);
    CHECK_EQ(read.timeout_ms, 1500);
    CHECK(read.sync);
    CHECK_BYTES(body, slice_of("body"));
}

TEST(what_a_request_does_not_say_is_left_out)
{
    CLEANUP(buffer_free) Buffer request = {.bytes = NULL};
    RequestEnvelope envelope = {.timeout_ms = 0};
    CHECK_EQ(envelope_request_write(&request, &envelope, 0), ERROR_NONE);
    CHECK_EQ(buffer_size(&request), 0);
    Slice body;
    CHECK(envelope_request_read(slice_of(""), &envelope, &body));
    CHECK_EQ(envelope.method.size + body.size, 0);
}

TEST(a_request_that_is_cut_off_is_malformed_or_ends_between_two_fields)
{
    CLEANUP(buffer_free) Buffer request = {.bytes = NULL};
    RequestEnvelope envelope = full(), read;
    Slice body;
    CHECK_EQ(envelope_request_write(&request, &envelope, 4), ERROR_NONE);
    CHECK_EQ(buffer_append(&request, slice_of("body")), ERROR_NONE);
    size_t whole_count = 0;
    for (size_t size = 0; size < buffer_size(&request); size++)
        whole_count += envelope_request_read(slice(request.bytes, size), &read, &body);
    CHECK_EQ(whole_count, 7); // before each of the seven fields
}

TEST(a_reply_is_the_body_with_the_envelope_in_front)
{
    CLEANUP(buffer_free) Buffer reply = {.bytes = NULL};
    CHECK_EQ(buffer_reset(&reply, ENVELOPE_RESPONSE_GAP), ERROR_NONE);
    CHECK_EQ(buffer_append(&reply, slice_of("body")), ERROR_NONE);
    envelope_response_begin(&reply, buffer_size(&reply));
    CHECK_BYTES(buffer_slice(&reply), slice_of("\x7a\x04"
                                               "body"));
    ResponseStatus status;
    Slice body;
    CHECK(envelope_response_read(buffer_slice(&reply), &status, &body));
    CHECK_EQ(status.code, 0);
    CHECK_BYTES(body, slice_of("body"));
}

TEST(a_failure_is_read_as_it_was_written)
{
    CLEANUP(buffer_free) Buffer reply = {.bytes = NULL};
    ResponseStatus said = {5, slice_of("no such session"), slice_of("SESSION_NOT_FOUND")}, read;
    Slice body;
    CHECK_EQ(buffer_reset(&reply, ENVELOPE_RESPONSE_GAP), ERROR_NONE);
    CHECK_EQ(envelope_response_fail(&reply, &said), ERROR_NONE);
    CHECK_BYTES(buffer_slice(&reply), slice_of("\x0a\x26\x08\x05\x12\x0fno such session\x1a\x11"
                                               "SESSION_NOT_FOUND"));
    CHECK(envelope_response_read(buffer_slice(&reply), &read, &body));
    CHECK_EQ(read.code, 5);
    CHECK_BYTES(read.message, said.message);
    CHECK_BYTES(read.reason, said.reason);
    CHECK_EQ(body.size, 0);
}
