// Reasons: one list in store.proto, one in base/error.h, and gRPC's codes.

#include <stdio.h>

#include "fixture.h"

static const ProtobufCEnumValue *reason_in_proto(const char *reason)
{
    char name[64];
    snprintf(name, sizeof(name), "REASON_%s", reason);
    return protobuf_c_enum_descriptor_get_value_by_name(&tine__v1__reason__descriptor, name);
}

TEST(reason_of_each_error_is_in_the_proto)
{
    for (Error error = ERROR_NONE + 1; error < ERROR_COUNT; error++) {
        if (!reason_in_proto(error_reason(error))) printf("%s\n", error_reason(error));
        CHECK(reason_in_proto(error_reason(error)));
        CHECK(*error_text(error) != '\0');
        CHECK(error_status(error) != STATUS_OK);
    }
    CHECK_STR(error_reason(ERROR_NONE), "");
}

TEST(reason_of_the_proto_is_of_some_error_each)
{
    const ProtobufCEnumDescriptor *descriptor = &tine__v1__reason__descriptor;
    for (unsigned i = 0; i < descriptor->n_values; i++) {
        const ProtobufCEnumValue *value = &descriptor->values[i];
        if (value->value == 0) continue;
        bool found = false;
        for (Error error = ERROR_NONE + 1; error < ERROR_COUNT; error++) {
            if (reason_in_proto(error_reason(error)) == value) found = true;
        }
        if (!found) printf("%s\n", value->name);
        CHECK(found);
    }
}

// The groups of enum Reason, by the number of the first reason in each.
TEST(reason_comes_with_the_code_of_its_group)
{
    static const struct {
        int first;
        StatusCode code;
    } GROUPS[] = {
        {1, STATUS_NOT_FOUND},         {5, STATUS_FAILED_PRECONDITION},
        {10, STATUS_ALREADY_EXISTS},   {12, STATUS_ABORTED},
        {15, STATUS_INVALID_ARGUMENT}, {22, STATUS_RESOURCE_EXHAUSTED},
        {26, STATUS_OUT_OF_RANGE},     {28, STATUS_UNAUTHENTICATED},
        {29, STATUS_UNIMPLEMENTED},    {30, STATUS_DEADLINE_EXCEEDED},
        {31, STATUS_UNAVAILABLE},      {32, STATUS_DATA_LOSS},
    };
    for (Error error = ERROR_NONE + 1; error < ERROR_COUNT; error++) {
        int number = reason_in_proto(error_reason(error))->value;
        StatusCode wanted = STATUS_OK;
        for (size_t i = 0; i < sizeof(GROUPS) / sizeof(*GROUPS); i++) {
            if (number >= GROUPS[i].first) wanted = GROUPS[i].code;
        }
        CHECK_EQ(error_status(error), wanted);
    }
}

TEST(codes_are_those_of_grpc)
{
    CHECK_EQ(STATUS_OK, 0);
    CHECK_EQ(STATUS_INVALID_ARGUMENT, 3);
    CHECK_EQ(STATUS_DEADLINE_EXCEEDED, 4);
    CHECK_EQ(STATUS_NOT_FOUND, 5);
    CHECK_EQ(STATUS_ALREADY_EXISTS, 6);
    CHECK_EQ(STATUS_RESOURCE_EXHAUSTED, 8);
    CHECK_EQ(STATUS_FAILED_PRECONDITION, 9);
    CHECK_EQ(STATUS_ABORTED, 10);
    CHECK_EQ(STATUS_OUT_OF_RANGE, 11);
    CHECK_EQ(STATUS_UNIMPLEMENTED, 12);
    CHECK_EQ(STATUS_UNAVAILABLE, 14);
    CHECK_EQ(STATUS_DATA_LOSS, 15);
    CHECK_EQ(STATUS_UNAUTHENTICATED, 16);
}
