// Bare LMDB: the limit of what any store on it can do. It puts rows of the number and sizes that
// tine puts (seven an append, in seven tables) and copies out the bytes of what is read; it checks
// nothing, decodes nothing and makes no replies.

#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "system.h"

enum {
    MESSAGE_EXTRA_BYTES = 150, // ids, usage and tags around the text
    CHUNK_BYTES = 4080,        // one page: larger values would have to lie side by side
    EVENT_BYTES = 150,
    OPERATION_BYTES = 170,
    COPY_BYTES = 64 << 20,
};

typedef enum Table {
    SESSIONS,
    MESSAGES,
    OWNERS,
    EVENTS,
    META,
    OPERATIONS,
    OPERATIONS_BY_AGE,
    TABLES
} Table;

typedef struct SessionRow {
    uint64_t parent, cutoff; // 0: none
    uint64_t entries;
    uint8_t other[380]; // settings, totals, previews
} SessionRow;

// One environment a process, whoever has opened it.
static struct {
    pthread_mutex_t mutex;
    size_t users;
    MDB_env *env;
    MDB_dbi tables[TABLES];
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

typedef struct Client {
    uint8_t *copy; // what was read
    uint8_t *value;
    size_t value_bytes;
} Client;

static void must(int result, const char *what)
{
    require(result == 0, "LMDB: %s: %s", what, mdb_strerror(result));
}

static MDB_txn *begin(unsigned flags)
{
    MDB_txn *txn;
    must(mdb_txn_begin(shared.env, NULL, flags, &txn), "begin");
    return txn;
}

static void *client_of(const Place *place, unsigned flags)
{
    static const char *const NAMES[] = {"sessions", "messages",   "owners",           "events",
                                        "meta",     "operations", "operations_by_age"};
    pthread_mutex_lock(&shared.mutex);
    if (shared.users++ == 0) {
        must(mdb_env_create(&shared.env), "create");
        mdb_env_set_maxdbs(shared.env, TABLES);
        mdb_env_set_mapsize(shared.env, (size_t)1 << 37);
        must(mdb_env_open(shared.env, place->directory, MDB_NOTLS | flags, 0600), "open");
        MDB_txn *txn = begin(0);
        for (size_t i = 0; i < TABLES; i++)
            must(mdb_dbi_open(txn, NAMES[i], MDB_CREATE, &shared.tables[i]), "dbi_open");
        must(mdb_txn_commit(txn), "commit");
    }
    pthread_mutex_unlock(&shared.mutex);
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    client->copy = malloc(COPY_BYTES);
    require(client->copy != NULL, "out of memory");
    return client;
}

static void *lmdb_connect(const Place *place)
{
    return client_of(place, 0);
}

static void *lmdb_fill_open(const Place *place)
{
    return client_of(place, MDB_NOSYNC);
}

static void lmdb_disconnect(void *context)
{
    Client *client = context;
    free(client->copy);
    free(client->value);
    free(client);
    pthread_mutex_lock(&shared.mutex);
    if (--shared.users == 0) mdb_env_close(shared.env);
    pthread_mutex_unlock(&shared.mutex);
}

// A message's key has tine's size: two ids of 16 bytes, of which the first half is alike in
// neighbours, and a chunk number.
typedef struct __attribute__((packed)) MessageKey {
    uint64_t session_time, session, time, number; // big-endian
    uint16_t chunk;
} MessageKey;

static MessageKey message_key(uint64_t session, uint64_t number, size_t chunk)
{
    return (MessageKey){0, __builtin_bswap64(session), 0, __builtin_bswap64(number),
                        __builtin_bswap16((uint16_t)chunk)};
}

static void put(MDB_txn *txn, Table table, const uint64_t *numbers, size_t count, const void *bytes,
                size_t size)
{
    uint64_t key[3];
    for (size_t i = 0; i < count; i++)
        key[i] = __builtin_bswap64(numbers[i]);
    MDB_val k = {count * sizeof(uint64_t), key}, v = {size, (void *)(uintptr_t)bytes};
    must(mdb_put(txn, shared.tables[table], &k, &v, 0), "put");
}

static SessionRow session_get(MDB_txn *txn, uint64_t session)
{
    uint64_t number = __builtin_bswap64(session);
    MDB_val key = {sizeof(number), &number}, value;
    must(mdb_get(txn, shared.tables[SESSIONS], &key, &value), "get");
    SessionRow row;
    memcpy(&row, value.mv_data, sizeof(row));
    return row;
}

// The next number of all, kept as tine keeps its last id.
static uint64_t next_number(MDB_txn *txn)
{
    uint64_t zero = 0, state[4] = {0};
    MDB_val key = {sizeof(zero), &zero}, value;
    if (mdb_get(txn, shared.tables[META], &key, &value) == 0) memcpy(state, value.mv_data, 32);
    state[0]++;
    put(txn, META, &zero, 1, state, sizeof(state));
    return state[0];
}

static uint64_t number_of(const Id *id)
{
    return strtoull(id->text, NULL, 10);
}

static void create(uint64_t parent, uint64_t cutoff, Id *out)
{
    MDB_txn *txn = begin(0);
    SessionRow row = {.parent = parent, .cutoff = cutoff};
    uint64_t number = next_number(txn);
    put(txn, SESSIONS, &number, 1, &row, sizeof(row));
    must(mdb_txn_commit(txn), "commit");
    snprintf(out->text, sizeof(out->text), "%llu", (unsigned long long)number);
}

static void lmdb_create(void *client, const SessionSpec *spec, Id *out)
{
    (void)client, (void)spec;
    create(0, 0, out);
}

static void lmdb_fork(void *client, const Id *session, const Id *message, Id *out)
{
    (void)client;
    create(number_of(session), strtoull(strchr(message->text, '/') + 1, NULL, 10), out);
}

static void put_message(Client *client, MDB_txn *txn, const uint64_t *ids, const Entry *entry)
{
    size_t size = entry->text_bytes + MESSAGE_EXTRA_BYTES;
    if (size > client->value_bytes) {
        client->value_bytes = size;
        client->value = realloc(client->value, size);
        require(client->value != NULL, "out of memory");
    }
    memset(client->value, 0, MESSAGE_EXTRA_BYTES);
    memcpy(client->value + MESSAGE_EXTRA_BYTES, entry->text, entry->text_bytes);
    for (size_t at = 0, chunk = 0; at < size; at += CHUNK_BYTES, chunk++) {
        MessageKey key = message_key(ids[0], ids[1], chunk);
        size_t left = size - at;
        MDB_val k = {sizeof(key), &key},
                v = {left < CHUNK_BYTES ? left : CHUNK_BYTES, client->value + at};
        must(mdb_put(txn, shared.tables[MESSAGES], &k, &v, 0), "put");
    }
}

static void lmdb_append(void *client, const Id *session, const Entry *entry, Id *out)
{
    static const uint8_t zeros[OPERATION_BYTES];
    MDB_txn *txn = begin(0);
    uint64_t ids[] = {number_of(session), next_number(txn)};
    SessionRow row = session_get(txn, ids[0]);
    row.entries++;
    put(txn, SESSIONS, ids, 1, &row, sizeof(row));
    put_message(client, txn, ids, entry);
    put(txn, OWNERS, &ids[1], 1, ids, 16);
    put(txn, EVENTS, &ids[1], 1, zeros, EVENT_BYTES);
    uint64_t operation[] = {ids[1] * UINT64_C(0x9E3779B97F4A7C15), ids[1]};
    put(txn, OPERATIONS, operation, 2, zeros, OPERATION_BYTES);
    put(txn, OPERATIONS_BY_AGE, &ids[1], 1, zeros, 32);
    must(mdb_txn_commit(txn), "commit");
    if (out) {
        snprintf(out->text, sizeof(out->text), "%llu/%llu", (unsigned long long)ids[0],
                 (unsigned long long)ids[1]);
    }
}

static void lmdb_propagate(void *client, const Id *session)
{
    (void)client;
    MDB_txn *txn = begin(0);
    for (uint64_t id = number_of(session); id;) {
        SessionRow row = session_get(txn, id);
        put(txn, SESSIONS, &id, 1, &row, sizeof(row));
        id = row.parent;
    }
    uint64_t number = next_number(txn);
    put(txn, EVENTS, &number, 1, (uint8_t[EVENT_BYTES]){0}, EVENT_BYTES);
    must(mdb_txn_commit(txn), "commit");
}

static void lmdb_get_session(void *client, const Id *session)
{
    (void)client;
    MDB_txn *txn = begin(MDB_RDONLY);
    (void)session_get(txn, number_of(session));
    mdb_txn_abort(txn);
}

// Copies the chunks from `first` on as long as they are of this session and not past `last`.
static size_t copy_messages(Client *client, MDB_cursor *cursor, const uint64_t first[2],
                            uint64_t last, size_t used, size_t *messages)
{
    MessageKey from = message_key(first[0], first[1], 0), found;
    MDB_val key = {sizeof(from), &from}, value;
    int failed = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (; !failed; failed = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        memcpy(&found, key.mv_data, sizeof(found));
        if (found.session != from.session || __builtin_bswap64(found.number) > last) break;
        require(used + value.mv_size <= COPY_BYTES, "a history of more than 64 MiB");
        memcpy(client->copy + used, value.mv_data, value.mv_size);
        used += value.mv_size;
        if (found.chunk == 0) ++*messages;
    }
    return used;
}

static void lmdb_get_message(void *client, const Id *message)
{
    size_t messages = 0;
    uint64_t number = strtoull(strchr(message->text, '/') + 1, NULL, 10);
    uint64_t first[] = {number_of(message), number};
    MDB_txn *txn = begin(MDB_RDONLY);
    MDB_cursor *cursor;
    must(mdb_cursor_open(txn, shared.tables[MESSAGES], &cursor), "cursor");
    (void)copy_messages(client, cursor, first, number, 0, &messages);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

// Session by session from the leaf on: a reply would have them the other way round, which costs a
// walk no more.
static void lmdb_history_bytes(void *client, const Id *session, Tally *out)
{
    *out = (Tally){0, 0};
    size_t used = 0;
    MDB_txn *txn = begin(MDB_RDONLY);
    MDB_cursor *cursor;
    must(mdb_cursor_open(txn, shared.tables[MESSAGES], &cursor), "cursor");
    uint64_t cutoff = UINT64_MAX;
    for (uint64_t id = number_of(session); id;) {
        SessionRow row = session_get(txn, id);
        used = copy_messages(client, cursor, (uint64_t[]){id, 0}, cutoff, used, &out->messages);
        id = row.parent;
        cutoff = row.cutoff;
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

static size_t lmdb_list(void *context, size_t limit, const char *query)
{
    (void)query; // every second one would match; the walk is what counts
    Client *client = context;
    size_t count = 0, steps = query ? 2 * limit : limit;
    MDB_txn *txn = begin(MDB_RDONLY);
    MDB_cursor *cursor;
    MDB_val key, value;
    must(mdb_cursor_open(txn, shared.tables[SESSIONS], &cursor), "cursor");
    int failed = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    for (; !failed && count < steps; count++) {
        memcpy(client->copy + count * sizeof(SessionRow), value.mv_data, value.mv_size);
        failed = mdb_cursor_get(cursor, &key, &value, MDB_PREV);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return query ? count / 2 : count;
}

SYSTEM(lmdb) = {
    .name = "lmdb",
    .about = "bare LMDB in the caller's process: the same number and size of rows, nothing else",
    .order = 20,
    .durability = DURABILITY_POWER,
    .is_limit = true,
    .connect = lmdb_connect,
    .disconnect = lmdb_disconnect,
    .fill_open = lmdb_fill_open,
    .fill_close = lmdb_disconnect,
    .create_session = lmdb_create,
    .fork_session = lmdb_fork,
    .append = lmdb_append,
    .propagate = lmdb_propagate,
    .get_session = lmdb_get_session,
    .get_message = lmdb_get_message,
    .history_bytes = lmdb_history_bytes,
    .list = lmdb_list,
};
