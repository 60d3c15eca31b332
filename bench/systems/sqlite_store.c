// The reference's schema and SQL.
//
// Where the reference is known to do less than its peers here, the better way is taken: a query
// filters before it limits, and how far forks are walked is a parameter (the reference ends at 8).

#include "sqlite_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "os/random.h"
#include "text/ulid.h"

enum {
    LOCK_TRIES_MAX = 30000, // a minute
    LOCK_PAUSE_US = 200,
    LOCK_PAUSE_US_MAX = 2000,
    LISTED_MAX = 1000,
    CHAIN_MAX = 33,
    SORTED_APART_BYTES = 4 << 20, // of the file
};

// Every statement that is used, prepared when it is first needed.
typedef enum Sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_CREATE,
    SQL_SESSION_EXISTS,
    SQL_APPEND,
    SQL_PREVIEW,
    SQL_CHAIN,
    SQL_ADD_TOTALS,
    SQL_GET_SESSION,
    SQL_OWN_TOTALS,
    SQL_GET_MESSAGE,
    SQL_MEMORIES,
    SQL_MARK,
    SQL_LATEST_MARKER,
    SQL_DEPTH,
    SQL_HISTORY,
    SQL_LIST,
    SQL_LIST_QUERY,
    SQL_COUNT,
} Sql;

struct SqliteStore {
    sqlite3 *db;
    SqliteOptions options;
    sqlite3_stmt *statements[SQL_COUNT];
    Random random;
    Ulid last_id;
};

#define SESSION_COLUMNS                                                                            \
    "s.id, s.slug, s.project_dir, s.first_message_preview, s.input_tokens, s.output_tokens, "      \
    "s.cache_read_tokens, s.cache_write_tokens, s.cost_usd, s.parent_id, s.fork_message_id, "      \
    "s.parent_tool_use_id, s.model_provider, s.model_name, s.kind, s.created_at, s.updated_at, "   \
    "s.deleted_at, s.metadata"
#define MESSAGE_COLUMNS                                                                            \
    "m.id, m.role, m.parts, m.input_tokens, m.output_tokens, m.cache_read_tokens, "                \
    "m.cache_write_tokens, m.cost_usd, m.created_at, m.session_id, m.duration_ms, m.deleted_at"
#define CHAIN_OF_FORKS                                                                             \
    "WITH RECURSIVE chain(id, parent_id, fork_message_id, cutoff, depth) AS ("                     \
    "  SELECT id, parent_id, fork_message_id, NULL, 0 FROM sessions WHERE id = ?1"                 \
    "  UNION ALL"                                                                                  \
    "  SELECT p.id, p.parent_id, p.fork_message_id, c.fork_message_id, c.depth + 1"                \
    "  FROM chain c JOIN sessions p ON p.id = c.parent_id"                                         \
    "  WHERE c.fork_message_id IS NOT NULL AND c.depth < ?2) "
#define LISTED "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.deleted_at IS NULL "

static const char *const STATEMENTS[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_CREATE] =
        "INSERT INTO sessions(id, parent_id, fork_message_id, slug, project_dir, model_provider, "
        "model_name, kind, created_at, updated_at) "
        "VALUES(?1, ?2, ?3, ?4, '" PROJECT_DIR "', '" MODEL_PROVIDER "', '" MODEL_NAME
        "', ?5, ?6, ?6)",
    [SQL_SESSION_EXISTS] = "SELECT project_dir FROM sessions WHERE id = ?1",
    [SQL_APPEND] = "INSERT INTO messages(id, session_id, role, parts, input_tokens, output_tokens, "
                   "cache_read_tokens, cache_write_tokens, cost_usd, created_at) "
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [SQL_PREVIEW] = "UPDATE sessions SET first_message_preview = substr(?2, 1, 256) "
                    "WHERE id = ?1 AND first_message_preview IS NULL",
    [SQL_CHAIN] = "WITH RECURSIVE chain(id, parent_id, depth) AS ("
                  "SELECT id, parent_id, 0 FROM sessions WHERE id = ?1 UNION ALL "
                  "SELECT p.id, p.parent_id, c.depth + 1 FROM chain c "
                  "JOIN sessions p ON p.id = c.parent_id WHERE c.depth < 32) "
                  "SELECT id FROM chain ORDER BY depth",
    [SQL_ADD_TOTALS] =
        "UPDATE sessions SET input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3, "
        "cache_read_tokens = cache_read_tokens + ?4, cache_write_tokens = cache_write_tokens + ?5, "
        "cost_usd = cost_usd + ?6, updated_at = ?7 WHERE id = ?1 "
        "RETURNING input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd",
    [SQL_GET_SESSION] = "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.id = ?1",
    [SQL_OWN_TOTALS] = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens), "
                       "SUM(cache_write_tokens), SUM(cost_usd) FROM messages "
                       "WHERE session_id = ?1 AND deleted_at IS NULL",
    [SQL_GET_MESSAGE] = "SELECT " MESSAGE_COLUMNS " FROM messages m WHERE m.id = ?1",
    [SQL_MEMORIES] = "SELECT id, content, created_at FROM session_memories WHERE session_id = ?1 "
                     "AND deleted_at IS NULL ORDER BY created_at, id",
    [SQL_MARK] =
        "INSERT INTO compaction_markers(id, session_id, before_message_id, summary, "
        "input_tokens_saved, created_at) VALUES(?1, ?2, ?3, 'what was done so far', 0, ?4)",
    [SQL_LATEST_MARKER] = "SELECT before_message_id, summary FROM compaction_markers "
                          "WHERE session_id = ?1 ORDER BY created_at DESC, id DESC LIMIT 1",
    [SQL_DEPTH] = CHAIN_OF_FORKS
    "SELECT MAX(depth), (SELECT parent_id FROM chain ORDER BY depth DESC LIMIT 1) FROM chain",
    [SQL_HISTORY] = CHAIN_OF_FORKS
    "SELECT " MESSAGE_COLUMNS " FROM chain c JOIN messages m ON m.session_id = c.id "
    "WHERE m.deleted_at IS NULL AND (c.cutoff IS NULL OR m.id <= c.cutoff) AND m.id > ?3 "
    "ORDER BY m.created_at, m.id",
    [SQL_LIST] = LISTED "ORDER BY s.created_at DESC, s.id DESC LIMIT ?1",
    [SQL_LIST_QUERY] = LISTED "AND (instr(lower(s.slug), ?2) OR instr(lower(s.project_dir), ?2) OR "
                              "instr(lower(s.first_message_preview), ?2)) "
                              "ORDER BY s.created_at DESC, s.id DESC LIMIT ?1",
};

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS sessions(id TEXT PRIMARY KEY, "
    "parent_id TEXT REFERENCES sessions(id) ON DELETE SET NULL, fork_message_id TEXT, "
    "parent_tool_use_id TEXT, slug TEXT, project_dir TEXT NOT NULL, model_provider TEXT NOT NULL, "
    "model_name TEXT NOT NULL, kind TEXT NOT NULL CHECK(kind IN ('primary', 'subagent')), "
    "input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, "
    "cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0, "
    "cost_usd REAL NOT NULL DEFAULT 0, first_message_preview TEXT, "
    "metadata TEXT NOT NULL DEFAULT '{}', created_at INTEGER NOT NULL, "
    "updated_at INTEGER NOT NULL, deleted_at INTEGER);"
    "CREATE INDEX IF NOT EXISTS sessions_created ON sessions(created_at);"
    "CREATE INDEX IF NOT EXISTS sessions_parent ON sessions(parent_id);"
    "CREATE TABLE IF NOT EXISTS messages(id TEXT PRIMARY KEY, "
    "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, "
    "role TEXT NOT NULL CHECK(role IN ('user', 'assistant', 'tool', 'system')), "
    "parts %s, input_tokens INTEGER, output_tokens INTEGER, "
    "cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost_usd REAL, duration_ms INTEGER, "
    "created_at INTEGER NOT NULL, deleted_at INTEGER);"
    "CREATE INDEX IF NOT EXISTS messages_session ON messages(session_id, created_at);"
    "CREATE TABLE IF NOT EXISTS compaction_markers(id TEXT PRIMARY KEY, "
    "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, "
    "before_message_id TEXT NOT NULL, summary TEXT NOT NULL, input_tokens_saved INTEGER NOT NULL, "
    "created_at INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS markers_session ON compaction_markers(session_id, created_at);"
    "CREATE TABLE IF NOT EXISTS session_memories(id TEXT PRIMARY KEY, "
    "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, content TEXT NOT NULL, "
    "created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER);"
    "CREATE INDEX IF NOT EXISTS memories_session ON session_memories(session_id, created_at);";

static void require_ok(const SqliteStore *store, int result, const char *what)
{
    require(result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE, "SQLite: %s: %s",
            what, sqlite3_errmsg(store->db));
}

static void execute(const SqliteStore *store, const char *sql)
{
    require_ok(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepared(SqliteStore *store, Sql sql)
{
    if (!store->statements[sql]) {
        require_ok(store,
                   sqlite3_prepare_v3(store->db, STATEMENTS[sql], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->statements[sql], NULL),
                   STATEMENTS[sql]);
    }
    return store->statements[sql];
}

static bool step(SqliteStore *store, Sql sql)
{
    int result = sqlite3_step(store->statements[sql]);
    require_ok(store, result, STATEMENTS[sql]);
    return result == SQLITE_ROW;
}

static void done(SqliteStore *store, Sql sql)
{
    require_ok(store, sqlite3_reset(store->statements[sql]), STATEMENTS[sql]);
}

static void run(SqliteStore *store, Sql sql)
{
    (void)prepared(store, sql);
    while (step(store, sql))
        continue;
    done(store, sql);
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    if (text) {
        sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(statement, index);
    }
}

static const char *column_text(sqlite3_stmt *statement, int index)
{
    return (const char *)sqlite3_column_text(statement, index);
}

static void id_set(Id *out, const char *text)
{
    require(text != NULL, "an id that is null");
    snprintf(out->text, sizeof(out->text), "%s", text);
}

// SQLite's own way to wait for another process (sqlite3_busy_timeout, the reference's) sleeps up to
// 100 ms at a time; with 8 that write the lock is then free most of the time.
static int wait_for_lock(void *context, int tries)
{
    (void)context;
    long us = LOCK_PAUSE_US * (tries + 1L);
    if (us > LOCK_PAUSE_US_MAX) us = LOCK_PAUSE_US_MAX;
    struct timespec pause = {.tv_nsec = us * 1000};
    (void)nanosleep(&pause, NULL);
    return tries < LOCK_TRIES_MAX;
}

// As one who wants speed of it would have it, by what was measured here. A cache that holds what is
// read, and what a history's rows are sorted in, instead of 2 MiB: a deep chain is read three times
// as fast by it. Sorting in single allocations (temp_store) takes half as long where much is sorted
// and a twelfth more where little is. Beside such a cache a mapped file (mmap_size) is no faster.
static void tune(const SqliteStore *store, const char *path)
{
    struct stat file;
    require(stat(path, &file) == 0, "cannot stat %s", path);
    execute(store, "PRAGMA cache_size=-65536");
    if (file.st_size > SORTED_APART_BYTES) execute(store, "PRAGMA temp_store=MEMORY");
}

SqliteStore *sqlite_store_open(const char *directory, const SqliteOptions *options)
{
    SqliteStore *store = calloc(1, sizeof(SqliteStore));
    require(store != NULL, "out of memory");
    store->options = *options;
    random_seed_system(&store->random);
    char text[4096];
    snprintf(text, sizeof(text), "%s/sessions.db", directory);
    require_ok(store, sqlite3_open(text, &store->db), text);
    sqlite3_busy_handler(store->db, wait_for_lock, NULL);
    execute(store, "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON");
    tune(store, text);
    execute(store, options->is_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    if (options->is_filling) {
        snprintf(text, sizeof(text), SCHEMA,
                 options->has_blobs ? "BLOB NOT NULL" : "TEXT NOT NULL CHECK(json_valid(parts))");
        execute(store, text);
        execute(store, "PRAGMA synchronous=OFF; BEGIN");
    }
    return store;
}

void sqlite_store_close(SqliteStore *store)
{
    if (store->options.is_filling) execute(store, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    for (size_t i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    require(sqlite3_close(store->db) == SQLITE_OK, "sqlite3_close");
    free(store);
}

static sqlite3_int64 now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (sqlite3_int64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// As the reference issues ids: in order within one process.
static void new_id(SqliteStore *store, Id *out)
{
    uint8_t low[10];
    int64_t now = now_ms();
    random_fill(&store->random, low, sizeof(low));
    bool is_later = now > ulid_time_ms(store->last_id);
    store->last_id = is_later ? ulid_make(now, low) : ulid_next(store->last_id);
    ulid_format(store->last_id, out->text);
}

static void begin(SqliteStore *store)
{
    if (!store->options.is_filling) run(store, SQL_BEGIN);
}

static void commit(SqliteStore *store)
{
    if (!store->options.is_filling) run(store, SQL_COMMIT);
}

static void create(SqliteStore *store, const char *slug, const char *parent, const char *message,
                   Id *out)
{
    new_id(store, out);
    sqlite3_stmt *statement = prepared(store, SQL_CREATE);
    bind_text(statement, 1, out->text);
    bind_text(statement, 2, parent);
    bind_text(statement, 3, message);
    bind_text(statement, 4, slug);
    bind_text(statement, 5, parent && !message ? "subagent" : "primary");
    sqlite3_bind_int64(statement, 6, now_ms());
    run(store, SQL_CREATE);
}

void sqlite_store_create(SqliteStore *store, const SessionSpec *spec, Id *out)
{
    create(store, spec->slug, spec->parent ? spec->parent->text : NULL, NULL, out);
}

static void ignore_message(void *context, const SqliteMessage *message)
{
    (void)context, (void)message;
}

void sqlite_store_fork(SqliteStore *store, const Id *session, const Id *message, Id *out)
{
    bind_text(prepared(store, SQL_SESSION_EXISTS), 1, session->text);
    require(step(store, SQL_SESSION_EXISTS), "no session %s", session->text);
    done(store, SQL_SESSION_EXISTS);
    sqlite_store_get_message(store, message, ignore_message, NULL);
    create(store, "", session->text, message->text, out);
}

void sqlite_store_append(SqliteStore *store, const Id *session, const SqliteMessage *message,
                         Id *out)
{
    Id id;
    new_id(store, &id);
    sqlite3_stmt *statement = prepared(store, SQL_APPEND);
    bind_text(statement, 1, id.text);
    bind_text(statement, 2, session->text);
    bind_text(statement, 3, message->role);
    int size = (int)message->parts_bytes;
    if (store->options.has_blobs) {
        sqlite3_bind_blob(statement, 4, message->parts, size, SQLITE_STATIC);
    } else {
        sqlite3_bind_text(statement, 4, message->parts, size, SQLITE_STATIC);
    }
    for (int i = 0; i < 4; i++)
        sqlite3_bind_int64(statement, 5 + i, message->usage[i]);
    sqlite3_bind_double(statement, 9, message->cost_usd);
    sqlite3_bind_int64(statement, 10, now_ms());
    run(store, SQL_APPEND);
    if (message->preview) {
        bind_text(prepared(store, SQL_PREVIEW), 1, session->text);
        bind_text(prepared(store, SQL_PREVIEW), 2, message->preview);
        run(store, SQL_PREVIEW);
    }
    if (out) *out = id;
}

static void add_totals(SqliteStore *store, const Id *session, sqlite3_int64 now)
{
    sqlite3_stmt *statement = prepared(store, SQL_ADD_TOTALS);
    bind_text(statement, 1, session->text);
    sqlite3_bind_int64(statement, 2, USAGE_INPUT);
    sqlite3_bind_int64(statement, 3, USAGE_OUTPUT);
    sqlite3_bind_int64(statement, 4, USAGE_CACHE_READ);
    sqlite3_bind_int64(statement, 5, USAGE_CACHE_WRITE);
    sqlite3_bind_double(statement, 6, USAGE_COST_NANO_USD / 1e9);
    sqlite3_bind_int64(statement, 7, now);
    run(store, SQL_ADD_TOTALS);
}

void sqlite_store_propagate(SqliteStore *store, const Id *session)
{
    Id chain[CHAIN_MAX];
    size_t count = 0;
    bind_text(prepared(store, SQL_CHAIN), 1, session->text);
    while (step(store, SQL_CHAIN) && count < CHAIN_MAX)
        id_set(&chain[count++], column_text(store->statements[SQL_CHAIN], 0));
    done(store, SQL_CHAIN);
    require(count > 0, "no session %s", session->text);
    begin(store);
    sqlite3_int64 now = now_ms();
    for (size_t i = 0; i < count; i++)
        add_totals(store, &chain[i], now);
    commit(store);
}

static SqliteSession session_at(sqlite3_stmt *row)
{
    SqliteSession session = {.id = column_text(row, 0),
                             .slug = column_text(row, 1),
                             .project_dir = column_text(row, 2),
                             .preview = column_text(row, 3),
                             .cost_usd = sqlite3_column_double(row, 8)};
    for (int i = 0; i < 4; i++)
        session.totals[i] = sqlite3_column_int64(row, 4 + i);
    return session;
}

void sqlite_store_get_session(SqliteStore *store, const Id *id, SqliteOnSession *on_session,
                              void *context)
{
    sqlite3_stmt *row = prepared(store, SQL_GET_SESSION);
    bind_text(row, 1, id->text);
    require(step(store, SQL_GET_SESSION), "no such session");
    SqliteSession session = session_at(row);
    sqlite3_stmt *sums = prepared(store, SQL_OWN_TOTALS);
    bind_text(sums, 1, id->text);
    (void)step(store, SQL_OWN_TOTALS);
    for (int i = 0; i < 4; i++)
        session.own_totals[i] = sqlite3_column_int64(sums, i);
    session.own_cost_usd = sqlite3_column_double(sums, 4);
    on_session(context, &session);
    done(store, SQL_OWN_TOTALS);
    done(store, SQL_GET_SESSION);
}

static SqliteMessage message_at(const SqliteStore *store, sqlite3_stmt *row)
{
    bool has_blobs = store->options.has_blobs;
    SqliteMessage message = {.id = column_text(row, 0), .role = column_text(row, 1)};
    message.parts = has_blobs ? sqlite3_column_blob(row, 2) : sqlite3_column_text(row, 2);
    message.parts_bytes = (size_t)sqlite3_column_bytes(row, 2);
    message.has_usage = sqlite3_column_int64(row, 3) != 0;
    for (int i = 0; i < 4; i++)
        message.usage[i] = sqlite3_column_int64(row, 3 + i);
    message.cost_usd = sqlite3_column_double(row, 7);
    message.created_at = sqlite3_column_int64(row, 8);
    return message;
}

void sqlite_store_get_message(SqliteStore *store, const Id *id, SqliteOnMessage *on_message,
                              void *context)
{
    sqlite3_stmt *row = prepared(store, SQL_GET_MESSAGE);
    bind_text(row, 1, id->text);
    require(step(store, SQL_GET_MESSAGE), "no such message");
    SqliteMessage message = message_at(store, row);
    on_message(context, &message);
    done(store, SQL_GET_MESSAGE);
}

size_t sqlite_store_memories(SqliteStore *store, const Id *session)
{
    size_t count = 0;
    bind_text(prepared(store, SQL_MEMORIES), 1, session->text);
    while (step(store, SQL_MEMORIES))
        count++;
    done(store, SQL_MEMORIES);
    return count;
}

void sqlite_store_mark(SqliteStore *store, const Id *session, const Id *before)
{
    Id id;
    new_id(store, &id);
    sqlite3_stmt *statement = prepared(store, SQL_MARK);
    bind_text(statement, 1, id.text);
    bind_text(statement, 2, session->text);
    bind_text(statement, 3, before->text);
    sqlite3_bind_int64(statement, 4, now_ms());
    run(store, SQL_MARK);
}

static void history_after(SqliteStore *store, const Id *session, const char *after,
                          SqliteOnMessage *on_message, void *context)
{
    sqlite3_int64 depth_max = (sqlite3_int64)store->options.forks_max;
    if (depth_max < FORKS_READABLE) depth_max = FORKS_READABLE;
    sqlite3_stmt *depth = prepared(store, SQL_DEPTH);
    bind_text(depth, 1, session->text);
    sqlite3_bind_int64(depth, 2, depth_max);
    require(step(store, SQL_DEPTH), "no such session");
    bool is_too_deep = sqlite3_column_int64(depth, 0) >= depth_max && column_text(depth, 1);
    require(!is_too_deep, "the chain of forks is deeper than %lld", (long long)depth_max);
    done(store, SQL_DEPTH);
    sqlite3_stmt *row = prepared(store, SQL_HISTORY);
    bind_text(row, 1, session->text);
    sqlite3_bind_int64(row, 2, depth_max);
    bind_text(row, 3, after);
    while (step(store, SQL_HISTORY)) {
        SqliteMessage message = message_at(store, row);
        on_message(context, &message);
    }
    done(store, SQL_HISTORY);
}

void sqlite_store_history(SqliteStore *store, const Id *session, SqliteOnMessage *on_message,
                          void *context)
{
    history_after(store, session, "", on_message, context);
}

void sqlite_store_window(SqliteStore *store, const Id *session, SqliteOnMessage *on_message,
                         void *context)
{
    Id before = {""};
    sqlite3_stmt *marker = prepared(store, SQL_LATEST_MARKER);
    bind_text(marker, 1, session->text);
    if (step(store, SQL_LATEST_MARKER)) id_set(&before, column_text(marker, 0));
    done(store, SQL_LATEST_MARKER);
    history_after(store, session, before.text, on_message, context);
}

// The IN-list of the two queries that follow a listing, each made anew as its length changes.
static sqlite3_stmt *prepare_for_listed(SqliteStore *store, const char *head,
                                        const SqliteSession *sessions, size_t count,
                                        const char *tail)
{
    size_t size = strlen(head) + strlen(tail) + 2 * count + 2;
    char *sql = malloc(size);
    require(sql != NULL, "out of memory");
    int used = snprintf(sql, size, "%s", head);
    for (size_t i = 0; i < count; i++)
        used += snprintf(sql + used, size - (size_t)used, "%s?", i ? "," : "");
    snprintf(sql + used, size - (size_t)used, "%s", tail);
    sqlite3_stmt *statement;
    require_ok(store, sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL), sql);
    for (size_t i = 0; i < count; i++)
        bind_text(statement, (int)i + 1, sessions[i].id);
    free(sql);
    return statement;
}

static SqliteSession *listed_with_id(SqliteSession *sessions, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sessions[i].id, id) == 0) return &sessions[i];
    }
    require(false, "a session that was not asked for");
    return NULL;
}

static void list_own_totals(SqliteStore *store, SqliteSession *sessions, size_t count)
{
    sqlite3_stmt *row = prepare_for_listed(
        store,
        "SELECT session_id, SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens), "
        "SUM(cache_write_tokens), SUM(cost_usd) FROM messages WHERE deleted_at IS NULL "
        "AND session_id IN (",
        sessions, count, ") GROUP BY session_id");
    while (sqlite3_step(row) == SQLITE_ROW) {
        SqliteSession *session = listed_with_id(sessions, count, column_text(row, 0));
        for (int i = 0; i < 4; i++)
            session->own_totals[i] = sqlite3_column_int64(row, 1 + i);
        session->own_cost_usd = sqlite3_column_double(row, 5);
    }
    sqlite3_finalize(row);
}

static void list_previews(SqliteStore *store, SqliteSession *sessions, size_t count,
                          SqlitePreview *preview)
{
    sqlite3_stmt *row =
        prepare_for_listed(store,
                           "SELECT session_id, role, parts FROM messages WHERE deleted_at IS NULL "
                           "AND role IN ('user', 'assistant') AND session_id IN (",
                           sessions, count, ") ORDER BY session_id, created_at DESC, id DESC");
    while (sqlite3_step(row) == SQLITE_ROW) {
        SqliteSession *session = listed_with_id(sessions, count, column_text(row, 0));
        bool is_user = strcmp(column_text(row, 1), "user") == 0;
        char *out = is_user ? session->last_user : session->last_assistant;
        if (!*out) preview(sqlite3_column_blob(row, 2), (size_t)sqlite3_column_bytes(row, 2), out);
    }
    sqlite3_finalize(row);
}

static char *copy_or_null(const char *text)
{
    return text ? strdup(text) : NULL;
}

size_t sqlite_store_list(SqliteStore *store, size_t limit, const char *query,
                         SqlitePreview *preview, SqliteOnSession *on_session, void *context)
{
    Sql sql = query ? SQL_LIST_QUERY : SQL_LIST;
    size_t count = 0;
    SqliteSession *sessions = calloc(LISTED_MAX, sizeof(SqliteSession));
    require(sessions != NULL && limit <= LISTED_MAX, "more than %d sessions", LISTED_MAX);
    sqlite3_stmt *row = prepared(store, sql);
    sqlite3_bind_int64(row, 1, (sqlite3_int64)limit);
    if (query) bind_text(row, 2, query);
    while (step(store, sql)) {
        SqliteSession session = session_at(row);
        session.id = copy_or_null(session.id);
        session.slug = copy_or_null(session.slug);
        session.project_dir = copy_or_null(session.project_dir);
        session.preview = copy_or_null(session.preview);
        sessions[count++] = session;
    }
    done(store, sql);
    list_own_totals(store, sessions, count);
    list_previews(store, sessions, count, preview);
    for (size_t i = 0; i < count; i++) {
        on_session(context, &sessions[i]);
        free((char *)(uintptr_t)sessions[i].id);
        free((char *)(uintptr_t)sessions[i].slug);
        free((char *)(uintptr_t)sessions[i].project_dir);
        free((char *)(uintptr_t)sessions[i].preview);
    }
    free(sessions);
    return count;
}
