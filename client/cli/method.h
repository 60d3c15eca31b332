// The calls of the contract that this program was built with.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "cli.h"

enum { METHOD_PATH_BYTES_MAX = 128 };

// Finds a call by its name ("GetSession", in any case) or by its path. If there is none, prints a
// message with the name that was probably meant, and returns NULL.
const ProtobufCMethodDescriptor *method_find_or_say(const char *name);

// Writes the path of a call: "/tine.v1.StoreService/GetSession".
void method_path(const ProtobufCMethodDescriptor *method, char out[METHOD_PATH_BYTES_MAX]);
