// gRPC C++ as people use it: the stubs that protoc makes of the same contract, a synchronous server
// and a blocking client on a Unix socket. Without libgrpc++ there is none of it.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GrpcPeer GrpcPeer;

// Whether this program was built with gRPC; if not, nothing else here may be called.
bool grpc_is_there(void);

// Answers GetSession with the GetSessionResponse whose bytes are in the file, until it is killed.
void grpc_serve(const char *socket, const char *reply_file);

GrpcPeer *grpc_open(const char *socket);
// GetSession. Returns the size of the decoded session's id; 0: it failed.
size_t grpc_get_session(GrpcPeer *peer, const char *session_id);
void grpc_close(GrpcPeer *peer);

#ifdef __cplusplus
}
#endif
