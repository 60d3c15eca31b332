// Table layout: lists the tables of the store and defines the shape of their keys. No other module
// knows either.
//
// Integers in keys are big-endian. An ID is 16 raw bytes. A string is stored as its 16-byte hash.
// `chunk` is a u16: a record longer than VALUE_BYTES_MAX continues under the next chunk number
// (store/record.h). docs/storage-format.md describes the values.

#pragma once

#include "base/bytes.h"
#include "base/hash.h"
#include "kv/kv.h"
#include "text/ulid.h"

// X(number, constant, name). The order gives each table its KvTable. The number is stored: it makes
// the table's byte in all keys (KV_TABLE_BYTE + number), so it is never changed or used again.
// Numbers 16 to 20 are reserved: docs/storage-format.md, "Reserved".
//
// The numbers also give the tables their order in the tree. A commit copies each page that it
// changes, so tables whose ends an append changes lie side by side: rows of META after kv's commit
// row; MESSAGE_OWNER, BY_ACTIVE, OPERATIONS_BY_AGE and EVENTS, where rows come at the end and old
// ones go at the front. EVENTS is last, because LMDB fills its pages only at the end of the tree.
#define STORE_TABLES(X)                                                                            \
    X(2, SESSIONS, "sessions")                    /* session, row u8, chunk */                     \
    X(3, MESSAGES, "messages")                    /* session, message, chunk */                    \
    X(28, MESSAGE_OWNER, "message_owner")         /* message */                                    \
    X(4, MARKERS, "markers")                      /* session, message kind u8, message */          \
    X(5, ORIGINS, "origins")                      /* session, id */                                \
    X(6, READERS, "readers")                      /* target session, reading session */            \
    X(7, MEMORIES, "memories")                    /* session, memory, chunk */                     \
    X(8, CALLS, "calls")                          /* session, call, chunk */                       \
    X(9, TODOS, "todos")                          /* session, chunk */                             \
    X(10, CHILDREN, "children")                   /* parent, child */                              \
    X(11, SESSION_INDEX, "session_index")         /* listing u8, hash, session */                  \
    X(29, BY_ACTIVE, "by_active")                 /* last_active_at u64, session */                \
    X(12, MESSAGE_EXTERNAL, "message_external")   /* hash of external, session */                  \
    X(13, PARTS, "parts")                         /* session, part kind u8, message, index u16 */  \
    X(14, OPERATIONS, "operations")               /* operation id as it is, 0, chunk */            \
    X(30, OPERATIONS_BY_AGE, "operations_by_age") /* number u64 */                                 \
    X(15, ORIGINALS, "originals")                 /* session, message, chunk */                    \
    X(31, EVENTS, "events")                       /* sequence u64, chunk */                        \
    X(1, META, "meta")                            /* a name */

typedef enum StoreTable {
#define X(number, constant, name) TABLE_##constant,
    STORE_TABLES(X)
#undef X
        TABLE_COUNT,
} StoreTable;

extern const KvTableOptions STORE_TABLE_OPTIONS[TABLE_COUNT];

static inline const char *store_table_name(StoreTable table)
{
    return STORE_TABLE_OPTIONS[table].name;
}

// The two rows of a session. Their bytes, one after the other, encode one Session.
enum { SESSION_ROW_SETTINGS = 0, SESSION_ROW_HEAD = 1 };

// The listings of session_index. LISTING_PURGING and LISTING_TOMBSTONE have a zero hash and name
// sessions that are no longer in `sessions` (store/purge.h). Rows of LISTING_CALL_EXTERNAL belong
// to calls and are deleted with them. Listings 16 to 20 are reserved: docs/storage-format.md.
typedef enum SessionListing {
    LISTING_PROJECT_DIR = 1,
    LISTING_SLUG = 2,
    LISTING_EXTERNAL = 3,
    LISTING_EXTERNAL_SOURCE = 4,
    LISTING_WORKSPACE = 5,
    LISTING_ACCOUNT = 6,
    LISTING_PROJECT = 7,
    LISTING_ROLE_NAME = 8,
    LISTING_DELETED = 9, // hash is zero
    LISTING_PURGING = 10,
    LISTING_TOMBSTONE = 11,
    LISTING_CALL_EXTERNAL = 12, // value: the ID of the call with this external ID
    LISTING_ACTIVE = 13,        // neither deleted nor archived; hash is zero
    LISTING_ARCHIVED = 14,      // hash is zero
    LISTING_STATUS = 15,        // hash: the status in its first byte; IDLE has no row
} SessionListing;

enum { KEY_SIZE_MAX = 96 };

typedef struct Key {
    uint8_t bytes[KEY_SIZE_MAX];
    size_t size;
} Key;

static inline Slice key_slice(const Key *key)
{
    return (Slice){key->bytes, key->size};
}

static inline void key_add(Key *key, const void *bytes, size_t size)
{
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

static inline void key_add_id(Key *key, Ulid id)
{
    key_add(key, id.bytes, ULID_BYTES);
}

static inline void key_add_u8(Key *key, uint8_t value)
{
    key->bytes[key->size++] = value;
}

static inline void key_add_u16(Key *key, uint16_t value)
{
    key_add_u8(key, (uint8_t)(value >> 8));
    key_add_u8(key, (uint8_t)value);
}

static inline void key_add_u64(Key *key, uint64_t value)
{
    uint8_t bytes[8];
    bytes_put_u64(bytes, value);
    key_add(key, bytes, sizeof(bytes));
}

// The next two functions read parts of a key. The caller must have checked the size of the key.
static inline Ulid key_id_at(Slice key, size_t offset)
{
    Ulid id;
    memcpy(id.bytes, key.bytes + offset, ULID_BYTES);
    return id;
}

static inline uint16_t key_u16_at(Slice key, size_t offset)
{
    return (uint16_t)(key.bytes[offset] << 8 | key.bytes[offset + 1]);
}

static inline Key key_of_id(Ulid id)
{
    Key key = {.size = 0};
    key_add_id(&key, id);
    return key;
}

static inline Key key_of_ids(Ulid first, Ulid second)
{
    Key key = key_of_id(first);
    key_add_id(&key, second);
    return key;
}

// Keys of record tables are built without a chunk number. store/record.c adds it.

static inline Key key_session(Ulid session, uint8_t row)
{
    Key key = key_of_id(session);
    key_add_u8(&key, row);
    return key;
}

static inline Key key_session_index(SessionListing listing, Hash hash, Ulid session)
{
    Key key = {.size = 0};
    key_add_u8(&key, (uint8_t)listing);
    key_add(&key, hash.bytes, HASH_BYTES);
    key_add_id(&key, session);
    return key;
}

static inline Key key_by_active(int64_t last_active_at, Ulid session)
{
    Key key = {.size = 0};
    key_add_u64(&key, (uint64_t)last_active_at);
    key_add_id(&key, session);
    return key;
}

static inline Key key_marker(Ulid session, uint8_t message_kind, Ulid message)
{
    Key key = key_of_id(session);
    key_add_u8(&key, message_kind);
    key_add_id(&key, message);
    return key;
}

static inline Key key_message_external(Hash hash, Ulid session)
{
    Key key = {.size = 0};
    key_add(&key, hash.bytes, HASH_BYTES);
    key_add_id(&key, session);
    return key;
}

static inline Key key_part(Ulid session, uint8_t part_kind, Ulid message, uint16_t index)
{
    Key key = key_of_id(session);
    key_add_u8(&key, part_kind);
    key_add_id(&key, message);
    key_add_u16(&key, index);
    return key;
}

static inline Key key_event(uint64_t sequence)
{
    Key key = {.size = 0};
    key_add_u64(&key, sequence);
    return key;
}

static inline Key key_operation_age(uint64_t number)
{
    Key key = {.size = 0};
    key_add_u64(&key, number);
    return key;
}

// The 0 keeps one operation ID from being a prefix of another. Operation IDs contain no NUL.
static inline Key key_operation(Slice operation_id)
{
    Key key = {.size = 0};
    key_add(&key, operation_id.bytes, operation_id.size);
    key_add_u8(&key, 0);
    return key;
}

static inline Key key_with_chunk(const Key *record_key, uint16_t chunk)
{
    Key key = *record_key;
    key_add_u16(&key, chunk);
    return key;
}

// Sizes of whole keys. Scans use them to recognize damaged rows.
enum {
    KEY_SESSION_BYTES = 16 + 1 + 2,
    KEY_MESSAGE_BYTES = 16 + 16 + 2,
    KEY_PAIR_BYTES = 16 + 16,
    KEY_MARKER_BYTES = 16 + 1 + 16,
    KEY_SESSION_INDEX_BYTES = 1 + 16 + 16,
    KEY_BY_ACTIVE_BYTES = 8 + 16,
    KEY_PART_BYTES = 16 + 1 + 16 + 2,
    KEY_EVENT_BYTES = 8 + 2,
};
