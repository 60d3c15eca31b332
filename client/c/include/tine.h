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
#include <stddef.h>
#include <stdint.h>

#include "tine/v1/records.pb-c.h"
#include "tine/v1/store.pb-c.h"
#include "tine_reasons.h"

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

// Returns the reason of a failed call; TINE_REASON_UNSPECIFIED if there is none, or one that this
// libtine does not know.
TineReason tine_reason(const TineStatus *status);

// Returns whether a call failed for this reason:
//
//     if (tine_status_is(&status, TINE_REASON_SESSION_NOT_FOUND)) …
bool tine_status_is(const TineStatus *status, TineReason reason);

// Writes reason and message for people, "SESSION_NOT_FOUND: no such session", cut to `room` bytes
// with the zero byte. Returns `out`.
const char *tine_status_text(const TineStatus *status, char *out, size_t room);

// What may be said about one call. All zeros is the default. The pointers are the caller's and
// borrowed until the call returns.
typedef struct TineCallOptions {
    const char *operation_id; // of a write. NULL: libtine makes one; "": none, never sent again
    int64_t timeout_ms;       // 0: none; the reply is waited for as long as the connection lives
    const char *traceparent;  // W3C's, for the server's log; NULL: none
    TineStatus *out_status;   // written whatever the outcome; NULL: not wanted
    bool no_retry;            // UNAVAILABLE at once when the connection breaks or there is none
    ProtobufCAllocator *allocator; // the response is decoded into it; NULL: malloc. See TineArena
    bool sync; // answered when this, and all before it, is on the disk; for relaxed stores
} TineCallOptions;

// Flags of TineOpenOptions.
enum {
    TINE_DIRECT_READS = 1, // reads run in this process where they can: see "Direct reads" below
};

// What may be said about a client. All zeros is the default. Copied.
typedef struct TineOpenOptions {
    const char *token;    // of a server on tcp://: what its token file holds; NULL: none
    int64_t retry_ms;     // how long a call without timeout_ms is tried again; 0: 10 s
    bool wait_for_server; // as long as that for the first connection too
    unsigned flags;       // TINE_DIRECT_READS
} TineOpenOptions;

// Opens what the URL names. `url` is copied. Returns 0, then `*out_tine` is the caller's, to be
// closed with tine_close; or the code that `out_status` (may be NULL) explains.
//
//     ipc:///run/…/tine.sock    the tined behind this socket
//     tcp://127.0.0.1:7461      the tined there, by libnng (if libtine was built with it)
//     nng+ipc://PATH            the same as ipc, by libnng
//     embedded:PATH             a private store in this process; PATH is made if it is missing
//     embedded::memory:         one that is gone when it is closed
//
// Behind the PATH of an embedded store may stand ?durability=relaxed (a commit is on the disk
// within 100 ms, not when it is acknowledged: docs/durability.md) and &flush_ms=N, for another
// time than 100; ?durability=sync is the default.
//
// A path of a socket ends at 107 bytes: a longer one is INVALID_ARGUMENT, and nothing is tried.
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

// Waits until the server answers, for `timeout_ms` at most (0: looks once, a second at most;
// negative: as long as it takes). Returns 0, then the server is ready for calls; else a code that
// `out_status` (may be NULL) explains: UNAVAILABLE, nobody answered in time, and why the last
// attempt failed; any other answer of the server's, such as UNAUTHENTICATED, at once. An embedded
// store is always ready.
int tine_ready(Tine *tine, int64_t timeout_ms, TineStatus *out_status);

// Calls. Some rules hold for all of them: an ID that is malformed is INVALID_ARGUMENT, one that
// nothing has is NOT_FOUND; a limit over the greatest one (1000 for sessions) is INVALID_ARGUMENT,
// it is not cut down to that.

// One call by its method's path. On success (0) `*out_response` is the caller's, freed with
// protobuf_c_message_free_unpacked (given the same allocator, if there was one); otherwise it is
// left as it was. `request` is borrowed until the call returns. `options` may be NULL. With a
// timeout the call returns half a second after it at the latest: DEADLINE_EXCEEDED (4). A server
// that cannot be reached is UNAVAILABLE (14).
int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response);

// Arenas: memory for decoded responses, given back in one go. A page of a history is thousands of
// small strings, and malloc and free of each cost more than the rest of decoding it:
//
//     TineArena *arena = tine_arena_open();
//     TineCallOptions options = {.allocator = tine_arena_allocator(arena)};
//     while (…) {
//         tine_messages_for_session(tine, &options, &request, &response); // lives in the arena …
//         tine_arena_reset(arena);                                        // … until here
//     }
//     tine_arena_close(arena);
//
// What was decoded into an arena is never freed singly; protobuf_c_message_free_unpacked with the
// arena's allocator is allowed and does nothing. An arena is for one thread at a time.
typedef struct TineArena TineArena;

// NULL: there is no memory. Else the caller's, for tine_arena_close.
TineArena *tine_arena_open(void);

// Borrowed until the arena is closed. Of use wherever protobuf-c takes an allocator.
ProtobufCAllocator *tine_arena_allocator(TineArena *arena);

// Ends the life of all that is in the arena, and keeps up to 1 MiB for what comes next.
void tine_arena_reset(TineArena *arena);

// NULL is allowed.
void tine_arena_close(TineArena *arena);

enum { TINE_CURSOR_BYTES = 257 };

// Pages: a listing to its end. Each call that has a cursor has a function that fetches its next
// page (tine_calls.h):
//
//     TinePages pages = {0};
//     Tine__V1__ListSessionsResponse *page;
//     while ((page = tine_list_sessions_next(tine, &options, &request, &pages))) {
//         for (size_t i = 0; i < page->n_sessions; i++) …
//     }
//     tine_pages_end(&pages);
//     if (pages.code) … // it failed there; options.out_status says why
//
// The listing begins at the request's own cursor. A page is borrowed until the next one is fetched
// or tine_pages_end is called. Request and options must be the same for all pages of a listing.
typedef struct TinePages {
    int code; // 0, or that of the call that failed: then there are no more pages
    // The rest is libtine's; all zeros to begin with.
    bool is_last;
    ProtobufCMessage *page;
    ProtobufCAllocator *allocator;
    char cursor[TINE_CURSOR_BYTES];
} TinePages;

typedef struct TineListing {
    const char *method;
    const ProtobufCMessageDescriptor *page_type;
} TineListing;

// Fetches the next page of a listing. Returns NULL after the last one, and when the call failed.
// The functions of tine_calls.h call it with a listing that fits the request.
ProtobufCMessage *tine_next_page(Tine *tine, const TineCallOptions *options,
                                 const TineListing *listing, const ProtobufCMessage *request,
                                 TinePages *pages);

// Frees the last page. Call it when the loop has ended, or was left.
void tine_pages_end(TinePages *pages);

// Bytes that a call leaves, in memory that the next call with the same TineBytes uses again. All
// zeros to begin with; `bytes` is borrowed until the next call or tine_bytes_free.
typedef struct TineBytes {
    const uint8_t *bytes;
    size_t size;
    void *memory; // libtine's
    size_t capacity;
} TineBytes;

// tine_call without decoding: `reply` holds the encoded response message (an empty one is of no
// bytes). For those who pass it on, decode with another library, or need a part of it only. When
// the call fails its bytes are gone, too.
int tine_call_bytes(Tine *tine, const TineCallOptions *options, const char *method,
                    const ProtobufCMessage *request, TineBytes *reply);

// Frees the memory; the TineBytes may be used again.
void tine_bytes_free(TineBytes *bytes);

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

// Direct reads: a client on ipc:// that is opened with TINE_DIRECT_READS maps the server's store
// into its own process, read-only, and runs the calls that read right there: a page of a history
// costs its copy, not a round trip. Writes go to the server, and what it has acknowledged, to
// whomever, the next direct read sees.
//
// Nothing has to be prepared, and nothing changes but the time: wherever there is any doubt a read
// is a call like every other, and tine_client_stats says how often and why. So it is for another
// user than the server's, in another PID namespace or a container that does not see the store's
// directory, or may not write to its lock.mdb, over a store of another format, when the store's
// file was replaced (once; then the new one is opened), in a child of fork, when all reader slots
// of the store are taken, and for Health, Describe, Stats, a ListEvents that has to wait and a read
// with `sync`, which are asked of the server.
//
// A read holds the store's old pages back from being used again for as long as it runs: a
// microsecond to a millisecond. A process that dies in one is cleared away by the server within
// 15 s; one that is stopped in one (SIGSTOP, a debugger) keeps the store growing under writes until
// it goes on or dies, and is named by `tine stats`.

// Why a read did not run in this process.
typedef enum TineFallback {
    TINE_FALLBACK_ASKS_SERVER,     // it is about the server, or waits: no fault of anything
    TINE_FALLBACK_NO_SERVER,       // nobody said where the store is
    TINE_FALLBACK_NOT_OFFERED,     // the server keeps no file that others may open
    TINE_FALLBACK_OTHER_USER,      // it runs as another user
    TINE_FALLBACK_OTHER_NAMESPACE, // it numbers processes otherwise, or its directory is not here
    TINE_FALLBACK_OTHER_FORMAT,    // of the storage
    TINE_FALLBACK_OPEN_HERE,       // this process has the store open itself (embedded)
    TINE_FALLBACK_FORKED,          // this is a child of the process that opened the client
    TINE_FALLBACK_REPLACED,        // the store's file, its directory or its server is another now
    TINE_FALLBACK_MAP_GROWN,       // the store outgrew the map
    TINE_FALLBACK_READERS_FULL,    // too many read at the same time
    TINE_FALLBACK_STORE_ERROR,     // it cannot be opened or read here: `last_why` says more
    TINE_FALLBACK_COUNT,
} TineFallback;

// The name of a fallback: "OTHER_USER". Never NULL.
const char *tine_fallback_name(TineFallback fallback);

// What a client has done since it was opened, all threads together.
typedef struct TineClientStats {
    bool is_direct;        // the store is mapped, and was not found changed by the last read
    uint64_t direct_reads; // that ran in this process
    uint64_t calls;        // that went to the server (each counted once, however often sent)
    uint64_t fallbacks[TINE_FALLBACK_COUNT]; // of the calls: reads that were not direct, and why
    char last_why[256];                      // the last doubt, in words; "" if there was none
} TineClientStats;

// (tine_stats is the call that asks for the server's.)
void tine_client_stats(Tine *tine, TineClientStats *out_stats);

// One message of a history as it is stored: the pieces, one behind the other, are an encoded
// tine.v1.Message. Small messages, up to about 4 KiB, have one piece; so has each that came by
// a call.
typedef struct TinePiece {
    const uint8_t *bytes;
    size_t size;
} TinePiece;

typedef struct TineLent {
    const TinePiece *pieces;
    size_t piece_count;
    size_t size; // of all pieces
} TineLent;

// Lent until it returns. False: enough, no more of this page.
typedef bool (*TineMessageReader)(void *context, const TineLent *message);

// A page of a history (MessagesForSession), message by message, without a copy: `read` is given
// the very bytes of the store's pages, or, where the read is a call, those of the reply. While it
// runs the store cannot use its old pages again, so let it be quick. It may make calls on the same
// client. A child that is forked in it must not look at what was lent; for the child the read ends
// there, with ABORTED. Page sizes are as those of the call, so the next page begins at
// `out_next_cursor` (may be NULL), "" if this was the last one or `read` said enough.
// `request->newest_first`, `kinds`, `limit` and the rest mean what they mean for the call.
int tine_read_messages(Tine *tine, const TineCallOptions *options,
                       const Tine__V1__MessagesForSessionRequest *request, TineMessageReader read,
                       void *context, char out_next_cursor[TINE_CURSOR_BYTES]);

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
