// Errors: the one list of all errors, each with its status code, reason and default text.
//
// Every function that can fail returns `Error`; ERROR_NONE is zero. There are three kinds. Expected
// errors are named at the prototype, returned, and never logged. Environment errors
// (ERROR_STORE_FULL, ERROR_OUT_OF_MEMORY, ERROR_IO, ERROR_CORRUPT) are returned unchanged, with
// their cause in the ErrorDetail (report/error_detail.h), and logged once by dispatch. Our own
// mistakes are asserts; bytes from the wire or the disk are never asserted on.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE __attribute__((warn_unused_result))
#define CLEANUP(function) __attribute__((cleanup(function)))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

// gRPC's status codes: the numbers of Status.code on the wire.
typedef enum StatusCode {
    STATUS_OK = 0,
    STATUS_CANCELLED = 1,
    STATUS_UNKNOWN = 2,
    STATUS_INVALID_ARGUMENT = 3,
    STATUS_DEADLINE_EXCEEDED = 4,
    STATUS_NOT_FOUND = 5,
    STATUS_ALREADY_EXISTS = 6,
    STATUS_PERMISSION_DENIED = 7,
    STATUS_RESOURCE_EXHAUSTED = 8,
    STATUS_FAILED_PRECONDITION = 9,
    STATUS_ABORTED = 10,
    STATUS_OUT_OF_RANGE = 11,
    STATUS_UNIMPLEMENTED = 12,
    STATUS_INTERNAL = 13,
    STATUS_UNAVAILABLE = 14,
    STATUS_DATA_LOSS = 15,
    STATUS_UNAUTHENTICATED = 16,
} StatusCode;

// clang-format off
// X(name, code, reason, text): `reason` is Status.reason on the wire and an entry of enum Reason in
// store.proto (a test compares the two). `text` is used when there is no detail.
#define ERROR_LIST(X)                                                                              \
    X(SESSION_NOT_FOUND,   NOT_FOUND, "SESSION_NOT_FOUND", "no such session")                      \
    X(MESSAGE_NOT_FOUND,   NOT_FOUND, "MESSAGE_NOT_FOUND", "no such message")                      \
    X(MEMORY_NOT_FOUND,    NOT_FOUND, "MEMORY_NOT_FOUND", "no such memory in this session")        \
    X(CALL_NOT_FOUND,      NOT_FOUND, "CALL_NOT_FOUND", "no such call")                            \
    X(SESSION_DELETED,     FAILED_PRECONDITION, "SESSION_DELETED",                                 \
      "the session is deleted; RestoreSession brings it back")                                     \
    X(SESSION_ARCHIVED,    FAILED_PRECONDITION, "SESSION_ARCHIVED",                                \
      "the session is archived and read-only; UpdateSession with archived=false opens it")         \
    X(MESSAGE_SEALED,      FAILED_PRECONDITION, "MESSAGE_SEALED", "the message is sealed")         \
    X(FORKS_EXIST,         FAILED_PRECONDITION, "FORKS_EXIST",                                     \
      "live forks still read from this session; purge them first or set keep_for_forks")           \
    X(FORK_CHAIN_TOO_DEEP, FAILED_PRECONDITION, "FORK_CHAIN_TOO_DEEP",                             \
      "the fork chain would be deeper than --max-fork-depth allows")                               \
    X(SLUG_TAKEN,          ALREADY_EXISTS, "SLUG_TAKEN", "the slug is taken")                      \
    X(EXTERNAL_TAKEN,      ALREADY_EXISTS, "EXTERNAL_TAKEN", "the external id is taken")           \
    X(HEAD_MOVED,          ABORTED, "HEAD_MOVED",                                                  \
      "the session's head is not expected_head_id; read the session and try again")                \
    X(OPERATION_ID_REUSED, ABORTED, "OPERATION_ID_REUSED",                                         \
      "the operation_id was used with another request; use a fresh one for each operation")        \
    X(HISTORY_DIVERGED,    ABORTED, "HISTORY_DIVERGED", "the sent history is not the stored one")  \
    X(INVALID_ARGUMENT,    INVALID_ARGUMENT, "INVALID_ARGUMENT", "the request is not valid")       \
    X(INVALID_PART,        INVALID_ARGUMENT, "INVALID_PART", "a part is not valid")                \
    X(UNKNOWN_PART_KIND,   INVALID_ARGUMENT, "UNKNOWN_PART_KIND",                                  \
      "a part is of a kind that this server does not know")                                        \
    X(NOT_IN_TREE,         INVALID_ARGUMENT, "NOT_IN_TREE",                                        \
      "the message is not in this session's tree")                                                 \
    X(INVALID_UTF8,        INVALID_ARGUMENT, "INVALID_UTF8", "a string is not valid UTF-8")        \
    X(INVALID_JSON,        INVALID_ARGUMENT, "INVALID_JSON", "a JSON field is not valid JSON")     \
    X(TOO_LONG,            INVALID_ARGUMENT, "TOO_LONG", "a field is over its limit")              \
    X(STORE_FULL,          RESOURCE_EXHAUSTED, "STORE_FULL",                                       \
      "the disk is full; nothing was stored; free some space and try again")                       \
    X(TOO_MANY_IN_FLIGHT,  RESOURCE_EXHAUSTED, "TOO_MANY_IN_FLIGHT",                               \
      "too many requests in flight on this connection")                                            \
    X(QUEUE_FULL,          RESOURCE_EXHAUSTED, "QUEUE_FULL",                                       \
      "the server's queue is full; try again later")                                               \
    X(OUT_OF_MEMORY,       RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED",                               \
      "the server is out of memory; try again later")                                              \
    X(EVENTS_GONE,         OUT_OF_RANGE, "EVENTS_GONE",                                            \
      "events after this sequence are no longer kept; read the state anew and go on from the "     \
      "newest sequence")                                                                           \
    X(STORE_CHANGED,       OUT_OF_RANGE, "STORE_CHANGED",                                          \
      "the cursor belongs to another store; read the state anew")                                  \
    X(UNAUTHENTICATED,     UNAUTHENTICATED, "UNAUTHENTICATED", "the token is missing or wrong")    \
    X(UNIMPLEMENTED,       UNIMPLEMENTED, "UNIMPLEMENTED", "this server has no such method")       \
    X(DEADLINE_EXCEEDED,   DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED",                                 \
      "timeout_ms passed before the request was begun; nothing was done")                          \
    X(UNAVAILABLE,         UNAVAILABLE, "UNAVAILABLE", "the server is not available")              \
    X(IO,                  DATA_LOSS, "DATA_LOSS",                                                 \
      "the store failed to read or write its file; see the server's log")                          \
    X(CORRUPT,             DATA_LOSS, "DATA_LOSS",                                                 \
      "the store's file holds bytes that cannot be right; see the server's log")                   \
    X(CLOSED,              DATA_LOSS, "DATA_LOSS",                                                 \
      "the store closed itself after a failed commit and must be reopened")
// clang-format on

typedef enum Error {
    ERROR_NONE = 0,
#define X(name, code, reason, text) ERROR_##name,
    ERROR_LIST(X)
#undef X
        ERROR_COUNT,
} Error;

const char *error_name(Error error); // as in the list, such as "IO"; for the log
StatusCode error_status(Error error);
const char *error_reason(Error error); // "" for ERROR_NONE
const char *error_text(Error error);   // the default sentence

// Returns whether the environment failed and not the caller. Such errors are logged.
bool error_is_environment(Error error);
