// Messages in proto3's own JSON, as the libraries of other languages write it: lowerCamelCase
// names, 64-bit integers as strings, fields at their default left out. (`tine --json` is for people
// and jq, and differs in all three.)

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

void proto_json_write(FILE *out, const ProtobufCMessage *message);
