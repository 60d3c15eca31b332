// libtine: the C client of tine.
//
//     Tine *tine;
//     TineStatus status;
//     if (tine_open("ipc:///run/user/1000/tine/tine.sock", &status, &tine)) …
//     tine_append_message(tine, NULL, &request, &response);
//
// The typed calls, one per RPC, are in tine_calls.h. A Tine may be used by any number of threads
// at once: their calls share one connection, 64 of them in flight, the next ones wait for their
// turn.
//
// A connection is made with the first call, and again when it broke. A call whose connection
// broke is sent again, for the server runs no write twice that carries the same operation_id, and
// libtine gives each write one. TineCallOptions.no_retry switches that off. A write without an
// operation_id and BroadcastEvent, of which the server remembers none, are sent once.

#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "tine/v1/records.pb-c.h"

#ifdef __cplusplus
extern "C" {
#endif

// One store, as its client sees it. Made by tine_open, ended by tine_close.
typedef struct Tine Tine;

// How a call ended, in words. `code` is gRPC's number, 0 is OK. The caller's memory; nothing in
// it is to be freed.
typedef struct TineStatus {
    int code;
    char reason[64];   // an UPPER_SNAKE name of enum Reason
    char message[512]; // which field, and what to do about it
} TineStatus;

// What may be said about one call. All zeros is the default. The pointers are the caller's and
// borrowed until the call returns.
typedef struct TineCallOptions {
    const char *operation_id; // of a write. NULL: libtine makes one; "": none, never sent again
    int64_t timeout_ms;       // 0: none; the reply is waited for as long as the connection lives
    const char *traceparent;  // W3C's, for the server's log; NULL: none
    TineStatus *out_status;   // written whatever the outcome; NULL: not wanted
    bool no_retry;            // UNAVAILABLE at once when the connection breaks or there is none
} TineCallOptions;

// What may be said about a client. All zeros is the default. Copied.
typedef struct TineOpenOptions {
    const char *token;    // of a server on tcp://: what its token file holds; NULL: none
    int64_t retry_ms;     // how long a call without timeout_ms is tried again; 0: 10 s
    bool wait_for_server; // as long as that for the first connection too
} TineOpenOptions;

// Opens what the URL names. `url` is copied. Returns 0, then `*out_tine` is the caller's, to be
// closed with tine_close; or the code that `out_status` (may be NULL) explains.
//
//     ipc:///run/…/tine.sock    the tined behind this socket (a path of 107 bytes at most)
//     tcp://127.0.0.1:7461      the tined there, by libnng (if libtine was built with it)
//     nng+ipc://PATH            the same as ipc, by libnng
//     embedded:PATH             a private store in this process; PATH is made if it is missing
//     embedded::memory:         one that is gone when it is closed
//
// A socket is connected to by the first call. If nobody listens that call is UNAVAILABLE at once;
// with wait_for_server, and once there has been a connection, calls wait for the server. After a
// fork the child may use a client on ipc:// (it makes a connection of its own); embedded ones and
// those of libnng it may only close.
int tine_open(const char *url, TineStatus *out_status, Tine **out_tine);
int tine_open_with(const char *url, const TineOpenOptions *options, TineStatus *out_status,
                   Tine **out_tine);

// Ends the client and frees it. No call may be running, and what was made from it (services,
// watches) must be gone. NULL is allowed.
void tine_close(Tine *tine);

// One call by its method's path. On success (0) `*out_response` is the caller's, freed with
// protobuf_c_message_free_unpacked; otherwise it is left as it was. `request` is borrowed until
// the call returns. `options` may be NULL. With a timeout the call returns half a second after it
// at the latest: DEADLINE_EXCEEDED (4). A server that cannot be reached is UNAVAILABLE (14).
int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response);

// protobuf-c's own stubs on this client, for code that has them already:
//
//     ProtobufCService *service = tine_client_service(tine, &options);
//     tine__v1__store_service__get_session(service, &request, closure, data);
//     protobuf_c_service_destroy(service);
//
// A stub makes its call at once; the closure has run when it returns. It is given the response,
// which it borrows until it returns, or NULL when the call failed: then `options->out_status`
// says why. WatchEvents is a stream, which protobuf-c does not know: its stub fails with
// UNIMPLEMENTED (12); tine_watch is that call.
//
// Borrows `tine` and what `options` (may be NULL, copied) points to until it is destroyed; a
// fixed operation_id makes no sense here and is ignored. Safe from any thread without out_status.
// NULL when there is no memory; else the caller's.
ProtobufCService *tine_client_service(Tine *tine, const TineCallOptions *options);

// Watching: the events of a store or of one session as they happen. Those that are kept come in
// order, none missing and none twice, through lost connections and restarts of the server. Those
// that are broadcast (BroadcastEvent; their sequence is 0) come between them, behind the writes
// answered before: nothing keeps them, so a watcher that is slow or not connected loses some, and
// after such a loss one may come before a write that was lost with them and is listed.
//
// On ipc:// a watch listens to the server's bus and lists what the bus does not tell; in an
// embedded store, to the store itself. Over tcp:// and nng+…, and where there is no bus, it asks
// the server by ListEvents, which waits for news: later by a round trip, and without broadcasts.

typedef struct TineWatch TineWatch;

typedef enum TineWatchStart {
    TINE_WATCH_NEW = 0,    // what happens from now on
    TINE_WATCH_OLDEST = 1, // everything that is kept
    TINE_WATCH_AFTER = 2,  // what came after `after_sequence`
} TineWatchStart;

// All zeros watches everything from now on. Copied.
typedef struct TineWatchOptions {
    const char *session_id;  // NULL or "": of all sessions, and events of none
    const char *type_prefix; // "message.": only events whose type begins so; NULL: all
    TineWatchStart start;
    uint64_t after_sequence; // of the last event seen …
    const char *instance_id; // … and of its store, to notice another one; NULL: not checked
} TineWatchOptions;

// Begins to watch: what is written after this returned will be seen. `options` may be NULL.
// Returns 0, then `*out_watch` is the caller's, to be closed with tine_watch_close before `tine`
// is closed; or the code that `out_status` (may be NULL) explains. A watch has connections of its
// own; in a child of fork one on ipc:// makes new ones. NOT_FOUND: no such session. OUT_OF_RANGE:
// events after after_sequence are no longer kept (EVENTS_GONE), or they were another store's
// (STORE_CHANGED): close the watch, begin a new one from now on, then read the state anew.
int tine_watch(Tine *tine, const TineWatchOptions *options, TineStatus *out_status,
               TineWatch **out_watch);

// The next event: waits for it for `timeout_ms` (0: not at all; negative: as long as it takes).
// Returns 0, then `*out_event` is the caller's, freed with tine__v1__event__free_unpacked, or
// NULL when none came in that time: on ipc:// an event may come a moment after its write was
// answered. Otherwise the code that `out_status` (may be NULL) explains, and `*out_event` is left
// as it was: after UNAVAILABLE and DEADLINE_EXCEEDED the same watch may go on, it has lost nothing
// that is kept; OUT_OF_RANGE as above; NOT_FOUND when its session is purged. One thread at a time.
int tine_watch_next(TineWatch *watch, int64_t timeout_ms, TineStatus *out_status,
                    Tine__V1__Event **out_event);

// Where the watch stands: TineWatchOptions.after_sequence and .instance_id of one that goes on
// here. The text is borrowed until the watch is closed.
uint64_t tine_watch_sequence(const TineWatch *watch);
const char *tine_watch_instance_id(const TineWatch *watch);

// Ends the watch and frees it. NULL is allowed.
void tine_watch_close(TineWatch *watch);

#ifdef __cplusplus
}
#endif
