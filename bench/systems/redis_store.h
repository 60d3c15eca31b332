// Redis on a Unix socket, by hiredis: what redis.c and redis_always.c share.
//
// A session is a hash, its messages a stream of entries {role, parts as JSON, usage}, all sessions
// a sorted set by their number. What belongs together goes in one MULTI, and all that need not wait
// for each other in one pipeline. A fork's hash holds the whole line of its ancestors with their
// cut-offs, so that a history costs two round trips however deep it is.

#pragma once

#include "system.h"

void redis_store_start(Place *place, const char *appendfsync);
void redis_store_stop(Place *place);
void *redis_store_connect(const Place *place);
void redis_store_disconnect(void *client);
void *redis_store_fill_open(const Place *place);
void redis_store_fill_close(void *client);

void redis_create(void *client, const SessionSpec *spec, Id *out);
void redis_fork(void *client, const Id *session, const Id *message, Id *out);
void redis_append(void *client, const Id *session, const Entry *entry, Id *out);
void redis_propagate(void *client, const Id *session);
void redis_get_session(void *client, const Id *session);
void redis_get_message(void *client, const Id *message);
void redis_memories(void *client, const Id *session);
void redis_mark(void *client, const Id *session, const Id *before);
void redis_history_bytes(void *client, const Id *session, Tally *out);
void redis_history(void *client, const Id *session, Tally *out);
void redis_window(void *client, const Id *session, Tally *out);
size_t redis_list(void *client, size_t limit, const char *query);

// The calls of a System, all but start.
#define REDIS_CALLS                                                                                \
    .stop = redis_store_stop, .connect = redis_store_connect,                                      \
    .disconnect = redis_store_disconnect, .fill_open = redis_store_fill_open,                      \
    .fill_close = redis_store_fill_close, .create_session = redis_create,                          \
    .fork_session = redis_fork, .append = redis_append, .propagate = redis_propagate,              \
    .get_session = redis_get_session, .get_message = redis_get_message,                            \
    .list_memories = redis_memories, .mark = redis_mark, .history_bytes = redis_history_bytes,     \
    .history = redis_history, .window = redis_window, .list = redis_list
