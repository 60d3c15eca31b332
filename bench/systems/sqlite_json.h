// SQLite in the caller's process, parts as JSON: what sqlite_normal.c and sqlite_full.c share.

#pragma once

#include "system.h"

void *sqlite_json_connect(const Place *place, bool is_full);
void *sqlite_json_fill_open(const Place *place);
void sqlite_json_close(void *client);

void sqlite_json_create(void *client, const SessionSpec *spec, Id *out);
void sqlite_json_fork(void *client, const Id *session, const Id *message, Id *out);
void sqlite_json_append(void *client, const Id *session, const Entry *entry, Id *out);
void sqlite_json_propagate(void *client, const Id *session);
void sqlite_json_get_session(void *client, const Id *session);
void sqlite_json_get_message(void *client, const Id *message);
void sqlite_json_memories(void *client, const Id *session);
void sqlite_json_mark(void *client, const Id *session, const Id *before);
void sqlite_json_history_bytes(void *client, const Id *session, Tally *out);
void sqlite_json_history(void *client, const Id *session, Tally *out);
void sqlite_json_window(void *client, const Id *session, Tally *out);
size_t sqlite_json_list(void *client, size_t limit, const char *query);

// The calls of a System, all but connect.
#define SQLITE_JSON_CALLS                                                                          \
    .disconnect = sqlite_json_close, .fill_open = sqlite_json_fill_open,                           \
    .fill_close = sqlite_json_close, .create_session = sqlite_json_create,                         \
    .fork_session = sqlite_json_fork, .append = sqlite_json_append,                                \
    .propagate = sqlite_json_propagate, .get_session = sqlite_json_get_session,                    \
    .get_message = sqlite_json_get_message, .list_memories = sqlite_json_memories,                 \
    .mark = sqlite_json_mark, .history_bytes = sqlite_json_history_bytes,                          \
    .history = sqlite_json_history, .window = sqlite_json_window, .list = sqlite_json_list
