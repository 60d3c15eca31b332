// Limits: the maximum of every queue, string, page and wait that a caller can make grow. A limit
// that callers meet is documented in store.proto. Each is tested at its value and one above.

#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    // Requests and replies.
    REQUEST_BYTES_MAX = 16 * 1024 * 1024,
    ORIGINAL_BYTES_MAX = REQUEST_BYTES_MAX - 1024, // so that a reply can hold it
    PAGE_BYTES_DEFAULT = 768 * 1024, // of the whole reply; mangos reads at most 1 MiB by default
    PAGE_BYTES_MAX = 16 * 1024 * 1024,
    CONTEXT_BYTES_MAX = 16 * 1024 * 1024 - 1024, // of BuildContext's reply, without its messages
    PAGE_RESERVE_BYTES = 1024,                   // of a page, for envelope, cursor and a model
    RUN_BUDGET_BYTES = 256 * 1024 * 1024,        // of the arena, for a handler
    DECODE_BUDGET_BYTES_MIN = 64 * 1024,         // of the arena, for a small request
    DECODE_BUDGET_FACTOR = 4,                    // decoded bytes allowed per request byte …
    DECODE_BUDGET_EXTRA_BYTES = 1024 * 1024,     // … and in addition
    OPERATION_ID_BYTES_MAX = 64,
    METHOD_BYTES_MAX = 128,
    TRACEPARENT_BYTES_MAX = 128,
    TOKEN_BYTES_MAX = 256,
    CURSOR_BYTES_MAX = 256,
    WAIT_MS_MAX = 60 * 1000,
    WAITING_CALLS_MAX = 256,

    // Strings by use. A field without a rule in rpc/field_rules.c has STRING_BYTES_MAX.
    STRING_BYTES_MAX = 256, // names, ids, roles, types
    SLUG_BYTES_MAX = 128,
    TITLE_BYTES_MAX = 1024,
    PATH_BYTES_MAX = 4096,
    QUERY_BYTES_MAX = 256,
    SYSTEM_PROMPT_BYTES_MAX = 1024 * 1024,
    METADATA_JSON_BYTES_MAX = 64 * 1024,
    SESSION_DATA_JSON_BYTES_MAX = 1024 * 1024,
    SUMMARY_BYTES_MAX = 4 * 1024 * 1024, // of a marker's summary or an entry's text
    DETAILS_JSON_BYTES_MAX = 1024 * 1024,
    MEMORY_CONTENT_BYTES_MAX = 64 * 1024,
    TODO_CONTENT_BYTES_MAX = 4096,
    ERROR_MESSAGE_BYTES_MAX = 64 * 1024,
    EVENT_DATA_JSON_BYTES_MAX = 64 * 1024,
    // (Only the size of the request limits text, thinking, tool input and results, images, files
    // and data.)

    // Counts.
    PART_COUNT_MAX = 4096,
    ATTACHMENT_COUNT_MAX = 256,
    EXCHANGE_MESSAGE_COUNT_MAX = 2048,
    EXCHANGE_PART_COUNT_MAX = 65536, // of all messages, because the reply has the ID of each
    REPLAY_CALL_COUNT_MAX = 1024,    // newest calls that a replay searches for its own
    TODO_COUNT_MAX = 1000,
    KIND_FILTER_COUNT_MAX = 16,
    UPDATE_MASK_COUNT_MAX = 32,
    SETTING_COUNT_MAX = 64, // different settings that BuildContext returns
    SESSION_LIST_LIMIT_DEFAULT = 50,
    SESSION_LIST_LIMIT_MAX = 1000,
    LIST_LIMIT_MAX = 100000, // `limit` of listings whose pages are limited by bytes
    SCANNED_RECORDS_MAX = 10000,
    PART_LIST_READ_BYTES_MAX = 64 * 1024 * 1024, // of entries read for one page of parts
    JSON_DEPTH_MAX = 128,
    JSON_FOREIGN_DEPTH_MAX = 10000, // in files of other systems that are imported
    SLUG_SUFFIX_MAX = 1000000,
    FORK_DEPTH_OPTION_MAX = 1000000,

    // Previews, cut at a code point.
    FIRST_PREVIEW_BYTES_MAX = 256,
    LAST_PREVIEW_BYTES_MAX = 160,

    // Storage.
    VALUE_BYTES_MAX = 4072, // with its checksum one overflow page; larger values are chunked
    CHUNK_COUNT_MAX = 65535,
    KEY_BYTES_MAX = 510,    // LMDB's 511 without the table's byte
    CHECKSUM_TAGS = 131072, // rows that a process remembers as verified; a power of two
    PURGE_SLICE_ROWS = 500,
    EVENT_PRUNE_PER_EVENT = 2,
    EVENT_COUNT_DEFAULT = 1000000,
    EVENT_QUEUE_BYTES_MAX = 16 * 1024 * 1024, // of events that a listener has not taken yet
    OPERATION_PRUNE_PER_WRITE = 2,
    OPERATION_COUNT_DEFAULT = 10000000,
    READERS_MAX = 1024,
    READERS_WAIT_MS_MAX = 1000, // for readers of other processes, before lock.mdb is made again
    FLUSH_MS_DEFAULT = 100,     // until a commit of a relaxed store is flushed
    FLUSH_MS_MAX = 60 * 1000,   //
    SET_BACK_SKIP_MS = 2 * 60 * 1000,    // of IDs after a power cut: FLUSH_MS_MAX and a long flush
    LOG_SEGMENT_BYTES_MIN = 1024 * 1024, // of the first segment of a store's log
    LOG_SEGMENT_BYTES_MAX = 16 * 1024 * 1024, // unless a record needs more
    FLUSH_DATA_MS = 5 * 1000,                 // until a commit is in data.mdb on the disk, too
    UNFLUSHED_BYTES_BEGIN = 32 * 1024 * 1024, // of pages: a flush of data.mdb begins at once
    UNFLUSHED_BYTES_MAX = 128 * 1024 * 1024,  // of pages: writes wait for the flush

    // The writer.
    LEADER_REQUEST_BYTES_MAX = 64 * 1024, // of a write that may run on the thread of a connection
    BATCH_REQUESTS_MAX = 256,
    BATCH_BYTES_MAX = 4 * 1024 * 1024,
    QUEUE_REQUESTS_MAX = 8192,
    QUEUE_BYTES_MAX = 256 * 1024 * 1024,

    // Connections.
    CLIENTS_MAX = 4096,
    CLIENT_REQUESTS_MAX = 64,                   // of one connection, running or queued
    CLIENT_UNSENT_MAX = 128,                    // replies that one connection has not read …
    CLIENT_UNSENT_BYTES_MAX = 64 * 1024 * 1024, // … and their bytes; above either it is closed
    UNSENT_BYTES_MAX = 512 * 1024 * 1024,       // of all connections; above it, those with several
    CLIENT_UNSENT_BYTES_READY = 1024 * 1024,    // above it, its requests wait until it has read
    WAITING_BYTES_MAX = 256 * 1024 * 1024,      // of requests that wait so; more are refused
    HELLO_WAIT_MS = 10 * 1000,                  // then a connection without a hello is closed
    CONTEXTS_READY = 64,                        // that receive at the same time
    CONTEXTS_MAX = 65536,                       // requests in flight on all connections
    REQUESTS_KEPT_MAX = 8,                      // whose memory is kept for reuse
    LOAN_FROM_BYTES = 256 * 1024,               // of a reply; what follows may be lent to it …
    LOAN_PIECE_BYTES_MIN = 1024,                // … in pieces of at least this size
    LOANS_LATE_MAX = 16,                        // replies that keep a snapshot while they wait
    UNSENT_LOOK_MS = 500,                       // between checks for replies that are not read
    UNSENT_LOOKS_MAX = 4,                       // checks until such a client is closed
    FRAME_EXTRA_BYTES = 64 * 1024,   // read above REQUEST_BYTES_MAX, to answer what is wrong
    SEND_BUFFER_BYTES = 1024 * 1024, // asked of the kernel, which doubles them, for up to …
    SEND_BUFFERS_MAX = 256,          // … this many connections; others have the kernel's 208 KiB
    SUBSCRIBERS_MAX = 1024,
    BUS_SEND_MESSAGES_MAX = 8192, // unread by one subscriber; above it the oldest is dropped
    BUS_FRAME_BYTES_MAX = 64,     // from a subscriber, which sends nothing
    HEARTBEAT_MS = 5000,
    BUS_DRAIN_MS = 50, // at the end, for subscribers to read
    TASK_THREADS_MIN = 2,
    TASK_THREADS_MAX = 16,
    TOKEN_BYTES_MIN = 16,

    // Memory kept between calls.
    ARENA_BLOCK_BYTES_MIN = 16 * 1024,
    ARENA_KEEP_BYTES_MAX = 1024 * 1024,
    BUFFER_KEEP_BYTES_MAX = 2 * 1024 * 1024,
    LOG_LINE_BYTES_MAX = 2048,
    LOG_SAME_LINES_MAX = 10, // a second, of one failure that repeats
};

#define RESET_STEP_MS_MAX (INT64_C(3600) * 1000) // of store time, over a reset of the machine
#define TIME_MS_MAX INT64_C(253402300799999)     // the end of the year 9999
#define EVENT_AGE_MS_DEFAULT (INT64_C(7) * 24 * 3600 * 1000)
#define OPERATION_AGE_MS_DEFAULT (INT64_C(24) * 3600 * 1000)
