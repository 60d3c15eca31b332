// Identifiers: how protobuf-c turns a proto name into C names.
//
// The rules are protoc-c's own (c_helpers.cc of protobuf-c 1.4). Every function returns a new
// string that the caller owns.

#pragma once

// "tine.v1.RenameSessionRequest" → "Tine__V1__RenameSessionRequest".
char *identifier_type(const char *name);

// "tine.v1.RenameSessionRequest" → "tine__v1__rename_session_request".
char *identifier_lower(const char *name);

// "tine.v1.RenameSessionRequest" → "TINE__V1__RENAME_SESSION_REQUEST".
char *identifier_upper(const char *name);
