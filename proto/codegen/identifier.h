// Identifiers: turns proto names into the C names that protobuf-c makes of them.
//
// The rules are those of protoc-c (c_helpers.cc of protobuf-c 1.4). Each function returns a new
// string, which the caller frees.

#pragma once

// "tine.v1.RenameSessionRequest" → "Tine__V1__RenameSessionRequest".
char *identifier_type(const char *name);

// "tine.v1.RenameSessionRequest" → "tine__v1__rename_session_request".
char *identifier_lower(const char *name);

// "tine.v1.RenameSessionRequest" → "TINE__V1__RENAME_SESSION_REQUEST".
char *identifier_upper(const char *name);
