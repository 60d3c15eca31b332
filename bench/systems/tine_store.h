// tine's calls, whatever the way in: what tine_rpc.c, tine_embedded.c and others have in common.

#pragma once

#include "system.h"

// Clients by libtine. `flags` as of tine_open_with.
void *tine_store_connect_ipc(const Place *place, unsigned flags);
// `options` stands behind the path: "" or "?durability=relaxed".
void *tine_store_connect_embedded(const Place *place, const char *options);
void tine_store_disconnect(void *client);
// Ends the program if a read of this client, opened for direct ones, was a call.
void tine_store_require_direct(void *client);

// The engine in this process, without waiting for the disk.
void *tine_store_fill_open(const Place *place);
void tine_store_fill_close(void *client);

void tine_store_start(Place *place);
void tine_store_stop(Place *place);

void tine_create_session_of(void *client, const SessionSpec *spec, Id *out);
void tine_fork_of(void *client, const Id *session, const Id *message, Id *out);
void tine_append_of(void *client, const Id *session, const Entry *entry, Id *out);
void tine_propagate_of(void *client, const Id *session);
void tine_get_session_of(void *client, const Id *session);
void tine_get_message_of(void *client, const Id *message);
void tine_list_memories_of(void *client, const Id *session);
void tine_mark_of(void *client, const Id *session, const Id *before);
void tine_history_bytes_of(void *client, const Id *session, Tally *out);
void tine_history_lent_of(void *client, const Id *session, Tally *out); // without a copy
void tine_history_of(void *client, const Id *session, Tally *out);
void tine_window_of(void *client, const Id *session, Tally *out);
size_t tine_list_of(void *client, size_t limit, const char *query);

// The calls of a System, all but connect and disconnect.
#define TINE_STORE_CALLS                                                                           \
    .fill_open = tine_store_fill_open, .fill_close = tine_store_fill_close,                        \
    .create_session = tine_create_session_of, .fork_session = tine_fork_of,                        \
    .append = tine_append_of, .propagate = tine_propagate_of, .get_session = tine_get_session_of,  \
    .get_message = tine_get_message_of, .list_memories = tine_list_memories_of,                    \
    .mark = tine_mark_of, .history_bytes = tine_history_bytes_of, .history = tine_history_of,      \
    .window = tine_window_of, .list = tine_list_of
