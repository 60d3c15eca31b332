// The calls of the contract, as this program was built with it.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "cli.h"

enum { METHOD_PATH_BYTES_MAX = 128 };

// By its name ("GetSession", in any case), or its path with or without what comes before. NULL:
// there is none; said on standard error with the name that was probably meant.
const ProtobufCMethodDescriptor *method_find_or_say(const char *name);

// Its path, as the wire has it: "/tine.v1.StoreService/GetSession".
void method_path(const ProtobufCMethodDescriptor *method, char out[METHOD_PATH_BYTES_MAX]);
