// A store in SQLite with the reference's schema and SQL: one file, WAL, each statement prepared
// once, a cache of 64 MiB, a lock that is polled for. What a message's parts are, JSON or something
// else, is the caller's.

#pragma once

#include <sqlite3.h>

#include "system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SqliteStore SqliteStore;

typedef struct SqliteOptions {
    bool is_full;     // synchronous=FULL: each commit is flushed; else NORMAL
    bool is_filling;  // one transaction from open to close, and no flush
    bool has_blobs;   // parts are bytes; else JSON, which the schema checks
    size_t forks_max; // up to which a history is walked
} SqliteOptions;

SqliteStore *sqlite_store_open(const char *directory, const SqliteOptions *options);
void sqlite_store_close(SqliteStore *store);

typedef struct SqliteMessage {
    const char *id, *role;
    const void *parts;
    size_t parts_bytes;
    const char *preview; // its text, for the session's list; NULL: none
    bool has_usage;
    sqlite3_int64 usage[4]; // input, output, cache read, cache write
    double cost_usd;
    sqlite3_int64 created_at;
} SqliteMessage;

typedef struct SqliteSession {
    const char *id, *slug, *project_dir, *preview;
    sqlite3_int64 totals[4];
    double cost_usd;
    sqlite3_int64 own_totals[4];
    double own_cost_usd;
    char last_user[161], last_assistant[161];
} SqliteSession;

// Each is lent for the time of the call.
typedef void SqliteOnMessage(void *context, const SqliteMessage *message);
typedef void SqliteOnSession(void *context, const SqliteSession *session);
// The text of parts for a preview; leaves `out` empty if there is none.
typedef void SqlitePreview(const void *parts, size_t parts_bytes, char out[161]);

void sqlite_store_create(SqliteStore *store, const SessionSpec *spec, Id *out);
void sqlite_store_fork(SqliteStore *store, const Id *session, const Id *message, Id *out);
void sqlite_store_append(SqliteStore *store, const Id *session, const SqliteMessage *message,
                         Id *out);
void sqlite_store_propagate(SqliteStore *store, const Id *session);
void sqlite_store_get_session(SqliteStore *store, const Id *session, SqliteOnSession *on_session,
                              void *context);
void sqlite_store_get_message(SqliteStore *store, const Id *message, SqliteOnMessage *on_message,
                              void *context);
size_t sqlite_store_memories(SqliteStore *store, const Id *session);
void sqlite_store_mark(SqliteStore *store, const Id *session, const Id *before);
void sqlite_store_history(SqliteStore *store, const Id *session, SqliteOnMessage *on_message,
                          void *context);
void sqlite_store_window(SqliteStore *store, const Id *session, SqliteOnMessage *on_message,
                         void *context);
size_t sqlite_store_list(SqliteStore *store, size_t limit, const char *query,
                         SqlitePreview *preview, SqliteOnSession *on_session, void *context);

#ifdef __cplusplus
}
#endif
