// A store of conversations over gRPC C++: the stubs that protoc makes of tine's own contract, a
// synchronous server and blocking clients on a Unix socket. What is behind the server is C's
// (GrpcBackend): plain types only, since C++ knows none of ours.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GRPC_ID_BYTES = 80 };

// A message as it is stored: the client's NewMessage, encoded, and its id.
typedef void GrpcOnMessage(void *context, const char *id, const void *bytes, size_t size);

typedef struct GrpcSession {
    const char *id, *slug, *preview; // preview: NULL if there is none
    int64_t own_totals[4];           // input, output, cache read, cache write
} GrpcSession;

typedef void GrpcOnSession(void *context, const GrpcSession *session);

// What the server calls. A store that was opened is used by one call at a time.
typedef struct GrpcBackend {
    void *(*open)(const char *directory);
    void (*create)(void *store, const char *slug, const char *parent, char *out_id);
    void (*fork)(void *store, const char *session, const char *message, char *out_id);
    void (*append)(void *store, const char *session, const char *role, const char *preview,
                   bool has_usage, const void *bytes, size_t size, char *out_id);
    void (*propagate)(void *store, const char *session);
    void (*get_session)(void *store, const char *id, GrpcOnSession *on_session, void *context);
    void (*get_message)(void *store, const char *id, GrpcOnMessage *on_message, void *context);
    void (*memories)(void *store, const char *session);
    void (*mark)(void *store, const char *session, const char *before);
    void (*history)(void *store, const char *session, bool since_marker, GrpcOnMessage *on_message,
                    void *context);
    void (*list)(void *store, size_t limit, const char *query, GrpcOnSession *on_session,
                 void *context);
} GrpcBackend;

// Serves until it is killed.
void grpc_store_serve(const char *socket, const char *directory, const GrpcBackend *backend);
// The same with SQLite behind it.
void serve_grpc_sqlite(const char *socket, const char *directory);

// The text of an encoded message for a preview, cut to 160 bytes; "" if it has none.
void grpc_store_preview(const void *bytes, size_t size, char out[161]);

// A client. Each call must succeed, or the program ends.
typedef struct GrpcStore GrpcStore;

typedef enum GrpcRole { GRPC_USER, GRPC_ASSISTANT, GRPC_TOOL } GrpcRole;

GrpcStore *grpc_store_open(const char *socket);
void grpc_store_close(GrpcStore *store);
void grpc_store_create(GrpcStore *store, const char *slug, const char *parent, char *out_id);
void grpc_store_fork(GrpcStore *store, const char *session, const char *message, char *out_id);
void grpc_store_append(GrpcStore *store, const char *session, GrpcRole role, const char *text,
                       size_t text_bytes, char *out_id);
void grpc_store_propagate(GrpcStore *store, const char *session);
void grpc_store_get_session(GrpcStore *store, const char *session);
void grpc_store_get_message(GrpcStore *store, const char *message);
void grpc_store_memories(GrpcStore *store, const char *session);
void grpc_store_mark(GrpcStore *store, const char *session, const char *before);
void grpc_store_history(GrpcStore *store, const char *session, bool since_marker,
                        size_t *out_messages, size_t *out_text_bytes);
size_t grpc_store_list(GrpcStore *store, size_t limit, const char *query);

// An encoded NewMessage, for who fills a store without a server. Freed with free.
void *grpc_store_encode(GrpcRole role, const char *text, size_t text_bytes, size_t *out_size);

#ifdef __cplusplus
}
#endif
