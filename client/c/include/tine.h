// libtine: the C client of tine.
//
//     Tine *tine;
//     TineStatus status;
//     if (tine_open("ipc:///run/user/1000/tine/tine.sock", &status, &tine)) …
//     tine_append_message(tine, NULL, &request, &response);
//
// The typed calls, one per RPC, are in tine_calls.h. Any number of threads may use a Tine at once:
// their calls share one connection. 64 calls are in flight; further ones wait for their turn.
//
// The first call connects, and a later call connects again if the connection broke. A call whose
// connection broke is sent again: libtine gives each write an operation_id, and the server runs a
// write with the same operation_id only once. TineCallOptions.no_retry switches that off. A write
// without an operation_id is sent once. So is BroadcastEvent, whose operation_id the server does
// not remember.
//
// While nobody listens on a Unix socket, libtine tries again after 1 ms; after other failures,
// after 50 ms. The pause doubles each time, up to 2 s.

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

// A client of one store. tine_open makes it, tine_close ends it.
typedef struct Tine Tine;

// How a call ended. `code` is gRPC's number, 0 is OK. It is the caller's memory; nothing in it must
// be freed.
typedef struct TineStatus {
    int code;
    char reason[64];   // a name of enum Reason without its prefix: see tine_reason
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

// Options of one call. All zeros is the default. Pointers are borrowed until the call returns.
typedef struct TineCallOptions {
    const char *operation_id; // of a write. NULL: libtine makes one; "": none, and it is sent once
    int64_t timeout_ms;       // 0: none; waits for the reply as long as the connection lives
    const char *traceparent;  // W3C trace context, for the server's log; NULL: none
    TineStatus *out_status;   // always written; may be NULL
    bool no_retry;            // UNAVAILABLE at once if the connection breaks or there is none
    ProtobufCAllocator *allocator; // for the decoded response; NULL: malloc. See TineArena
    bool sync; // answered when it, and all before it, is on the disk; for relaxed stores
} TineCallOptions;

// Flags of TineOpenOptions.
enum {
    TINE_DIRECT_READS = 1, // reads run in this process if they can: see "Direct reads" below
};

// Options of a client. All zeros is the default. They are copied.
typedef struct TineOpenOptions {
    const char *token;    // for a server on tcp://: the content of its token file; NULL: none
    int64_t retry_ms;     // how long a call without timeout_ms is retried; 0: 10 s
    bool wait_for_server; // retries the first connection too
    unsigned flags;       // TINE_DIRECT_READS
} TineOpenOptions;

// Opens what the URL names. `url` is copied. Returns 0, then the caller closes `*out_tine` with
// tine_close; or a code that `out_status` (may be NULL) explains.
//
//     ipc:///run/…/tine.sock    the tined behind this socket
//     tcp://127.0.0.1:7461      the tined there, by libnng (if libtine was built with it)
//     nng+ipc://PATH            the same as ipc, by libnng
//     embedded:PATH             a private store in this process; the directory is made
//     embedded::memory:         the same, but it is gone when it is closed
//
// ?durability=relaxed after the PATH of an embedded store makes commits that are on the disk within
// 100 ms, not when they are acknowledged (docs/durability.md). &flush_ms=N changes the 100 ms.
// ?durability=sync is the default.
//
// A socket path has at most 107 bytes: a longer one is INVALID_ARGUMENT before anything is tried.
//
// The first call connects. If nobody listens it is UNAVAILABLE at once. With wait_for_server, and
// after there was a connection, calls wait for the server. A child of fork may use a client on
// ipc://, which makes a connection of its own; it may only close embedded clients and those of
// libnng.
int tine_open(const char *url, TineStatus *out_status, Tine **out_tine);
int tine_open_with(const char *url, const TineOpenOptions *options, TineStatus *out_status,
                   Tine **out_tine);

// Closes and frees the client. No call may be running, and its services and watches must be closed.
// NULL is allowed.
void tine_close(Tine *tine);

// Waits until the server answers, for `timeout_ms` at most (0: tries once, for a second at most;
// negative: for ever). Returns 0 if the server is ready for calls; otherwise a code that
// `out_status` (may be NULL) explains. UNAVAILABLE: nobody answered in time; the message says why
// the last attempt failed. Any other answer of the server, such as UNAUTHENTICATED, is returned at
// once. An embedded store is always ready.
int tine_ready(Tine *tine, int64_t timeout_ms, TineStatus *out_status);

// Calls. Two rules hold for all of them. A malformed id is INVALID_ARGUMENT; only a well-formed id
// that does not exist is NOT_FOUND. A limit over the maximum, 1000 for sessions, is
// INVALID_ARGUMENT; it is not reduced.

// Makes one call by its method's path (TINE_METHOD_… in tine_calls.h). Returns 0, then the caller
// frees `*out_response` with protobuf_c_message_free_unpacked and the same allocator; otherwise it
// is left unchanged. `request` is borrowed until the call returns. `options` may be NULL. A call
// with a timeout returns DEADLINE_EXCEEDED (4) half a second after it at the latest. If the server
// cannot be reached, the call returns UNAVAILABLE (14).
int tine_call(Tine *tine, const TineCallOptions *options, const char *method,
              const ProtobufCMessage *request, const ProtobufCMessageDescriptor *response_type,
              ProtobufCMessage **out_response);

// Arenas: memory for decoded responses that is freed at once. A page of a history has thousands of
// small strings, and malloc and free of each cost more than the rest of decoding:
//
//     TineArena *arena = tine_arena_open();
//     TineCallOptions options = {.allocator = tine_arena_allocator(arena)};
//     while (…) {
//         tine_messages_for_session(tine, &options, &request, &response); // lives in the arena …
//         tine_arena_reset(arena);                                        // … until here
//     }
//     tine_arena_close(arena);
//
// A response in an arena is never freed alone; protobuf_c_message_free_unpacked with the arena's
// allocator is allowed and does nothing. One thread at a time may use an arena.
typedef struct TineArena TineArena;

// Returns NULL if there is no memory. The caller closes the arena.
TineArena *tine_arena_open(void);

// Returns the allocator, borrowed until the arena is closed. protobuf-c's functions take it too.
ProtobufCAllocator *tine_arena_allocator(TineArena *arena);

// Frees everything in the arena, and keeps up to 1 MiB of memory for the next response.
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

// The bytes of a reply, in memory that the next call with the same TineBytes uses again. Begin with
// all zeros. `bytes` is borrowed until the next call or tine_bytes_free.
typedef struct TineBytes {
    const uint8_t *bytes;
    size_t size;
    void *memory; // libtine's
    size_t capacity;
} TineBytes;

// tine_call without decoding: `reply` receives the encoded response message. Use it to pass a
// response on, to decode it with another library, or to read only a part of it. If the call fails,
// `reply` is empty.
int tine_call_bytes(Tine *tine, const TineCallOptions *options, const char *method,
                    const ProtobufCMessage *request, TineBytes *reply);

// Frees the memory. The TineBytes may be used again.
void tine_bytes_free(TineBytes *bytes);

// Makes a service for protobuf-c's own stubs, for code that uses them:
//
//     ProtobufCService *service = tine_client_service(tine, &options);
//     tine__v1__store_service__get_session(service, &request, closure, data);
//     protobuf_c_service_destroy(service);
//
// A stub makes its call at once and runs the closure before it returns. The closure borrows the
// response; it is NULL if the call failed, and `options->out_status` says why. protobuf-c has no
// streams, so the stub of WatchEvents fails with UNIMPLEMENTED (12); use tine_watch.
//
// The service borrows `tine` and what `options` points to until it is destroyed. `options` itself
// may be NULL and is copied; its operation_id is ignored. Any thread may use a service without
// out_status. Returns NULL if there is no memory.
ProtobufCService *tine_client_service(Tine *tine, const TineCallOptions *options);

// Direct reads: a client on ipc:// that is opened with TINE_DIRECT_READS maps the server's store
// read-only into its own process and runs reads there. A page of a history then costs a copy, not a
// round trip. Writes go to the server. The next direct read sees everything that the server has
// acknowledged to anybody.
//
// Only the speed changes, and nothing must be prepared: in case of doubt a read is a normal call,
// and tine_client_stats says how often and why. Reads are calls
//
//   - if this process runs as another user than the server, in another PID namespace, or in a
//     container that does not see the store's directory or may not write to its lock.mdb;
//   - if the store has another format, or all its reader slots are taken;
//   - once after the store's file was replaced, then the new one is opened;
//   - in a child of fork;
//   - for Health, Describe and Stats, a ListEvents that waits, and a read with `sync`.
//
// A read keeps the store from using old pages again while it runs: a microsecond to a millisecond.
// If a process dies during a read, the server clears it away within 15 s. If a process is stopped
// during a read (SIGSTOP, a debugger), the store grows with each write until the process goes on or
// dies; `tine stats` names it.
//
// The pages of the store are mapped, so what the disk does to them can reach this process. No reply
// has altered bytes, because each row has a checksum. But a damaged page can end the process: by
// SIGBUS, if the disk cannot read the page or the file was cut short, and by SIGSEGV or SIGABRT if
// the page is not what the engine expects. So the server offers direct reads only when it has
// checked all pages after a reset of the machine, and opening checks the first of them. What
// remains is damage that the disk does later. An embedded store is mapped likewise. Use calls where
// a process must not end for that.

// Why a read did not run in this process.
typedef enum TineFallback {
    TINE_FALLBACK_ASKS_SERVER,     // it is about the server, or it waits
    TINE_FALLBACK_NO_SERVER,       // no server said where the store is
    TINE_FALLBACK_NOT_OFFERED,     // the server has no file that others may open, or checks it yet
    TINE_FALLBACK_OTHER_USER,      // the server runs as another user
    TINE_FALLBACK_OTHER_NAMESPACE, // another PID namespace, or the directory is not visible
    TINE_FALLBACK_OTHER_FORMAT,    // the store has another format
    TINE_FALLBACK_OPEN_HERE,       // this process has the store open as an embedded one
    TINE_FALLBACK_FORKED,          // this is a child of the process that opened the client
    TINE_FALLBACK_REPLACED,        // the store's file, its directory or its server was replaced
    TINE_FALLBACK_MAP_GROWN,       // the store outgrew the map
    TINE_FALLBACK_READERS_FULL,    // too many readers at the same time
    TINE_FALLBACK_STORE_ERROR,     // the store cannot be opened or read: `last_why` says why
    TINE_FALLBACK_COUNT,
} TineFallback;

// Returns the name of a fallback, such as "OTHER_USER"; never NULL.
const char *tine_fallback_name(TineFallback fallback);

// What all threads have done with a client since it was opened.
typedef struct TineClientStats {
    bool is_direct;        // the store is mapped, and the last read found it unchanged
    uint64_t direct_reads; // reads that ran in this process
    uint64_t calls;        // calls to the server; each counts once, however often it was sent
    uint64_t
        fallbacks[TINE_FALLBACK_COUNT]; // of these calls: reads that were not direct, by reason
    char last_why[256];                 // why the last read was not direct; "" if all were
} TineClientStats;

// Fills the client's statistics. (tine_stats asks for the server's.)
void tine_client_stats(Tine *tine, TineClientStats *out_stats);

// One message of a history: its pieces together are an encoded tine.v1.Message. A message up to
// about 4 KiB has one piece; so has each message that came by a call.
typedef struct TinePiece {
    const uint8_t *bytes;
    size_t size;
} TinePiece;

typedef struct TineLent {
    const TinePiece *pieces;
    size_t piece_count;
    size_t size; // of all pieces
} TineLent;

// Reads one message, which is borrowed until it returns. Returns false to end the page.
typedef bool (*TineMessageReader)(void *context, const TineLent *message);

// Reads a page of a history (MessagesForSession) message by message, without a copy: `read`
// receives the bytes in the store's own pages, or in the reply if the read is a call. The store
// cannot use old pages again while `read` runs, so it should be quick. It may make calls on the
// same client. If it forks, the child must not touch the message, and the read ends there with
// ABORTED.
//
// `request` means the same as for the call. `out_next_cursor` (may be NULL) receives where the next
// page begins, or "" if this was the last page or `read` returned false.
int tine_read_messages(Tine *tine, const TineCallOptions *options,
                       const Tine__V1__MessagesForSessionRequest *request, TineMessageReader read,
                       void *context, char out_next_cursor[TINE_CURSOR_BYTES]);

// Watching: the events of a store or of one session as they happen. Stored events come in order,
// none missing and none twice, through lost connections and restarts of the server. Broadcast
// events (BroadcastEvent; their sequence is 0) come between them, after the writes that were
// answered before. Nothing stores them, so a watcher that is slow or not connected loses some.
// After such a loss a broadcast may come before a stored event that was lost with it.
//
// On ipc:// a watch listens to the server's bus and lists what the bus lost. In an embedded store
// it listens to the store. Over tcp:// and nng+…, and without a bus, it asks the server by
// ListEvents, which waits for news: that is later by a round trip and has no broadcasts.

typedef struct TineWatch TineWatch;

typedef enum TineWatchStart {
    TINE_WATCH_NEW = 0,    // what happens from now on
    TINE_WATCH_OLDEST = 1, // all stored events
    TINE_WATCH_AFTER = 2,  // what came after `after_sequence`
} TineWatchStart;

// Options of a watch; they are copied. All zeros watches everything from now on.
typedef struct TineWatchOptions {
    const char *session_id;  // NULL or "": all events, also those of no session
    const char *type_prefix; // "message.": only events whose type begins like this; NULL: all
    TineWatchStart start;
    uint64_t after_sequence; // of the last event seen …
    const char *instance_id; // … and its store, to notice another store; NULL: not checked
} TineWatchOptions;

// Begins to watch: everything written after it returned will be seen. `options` may be NULL.
// Returns 0, then the caller closes `*out_watch` before `tine`; or a code that `out_status` (may be
// NULL) explains. A watch has connections of its own; in a child of fork one on ipc:// makes new
// ones. NOT_FOUND: no such session. OUT_OF_RANGE: events after after_sequence are no longer stored
// (EVENTS_GONE), or are of another store (STORE_CHANGED): close the watch, begin a new one from now
// on, then read the state again.
int tine_watch(Tine *tine, const TineWatchOptions *options, TineStatus *out_status,
               TineWatch **out_watch);

// Waits for the next event for `timeout_ms` (0: not at all; negative: for ever). Returns 0, then
// the caller frees `*out_event` with tine__v1__event__free_unpacked; it is NULL if no event came in
// time. On ipc:// an event may come a moment after its write was answered. Otherwise returns a code
// that `out_status` (may be NULL) explains, and leaves `*out_event` unchanged. After UNAVAILABLE
// and DEADLINE_EXCEEDED the same watch may go on: it has lost no stored event. OUT_OF_RANGE is as
// above. NOT_FOUND: the session was purged. One thread at a time may call it.
int tine_watch_next(TineWatch *watch, int64_t timeout_ms, TineStatus *out_status,
                    Tine__V1__Event **out_event);

// Return the position of the watch: after_sequence and instance_id for a watch that goes on from
// here. The text is borrowed until the watch is closed.
uint64_t tine_watch_sequence(const TineWatch *watch);
const char *tine_watch_instance_id(const TineWatch *watch);

// Closes and frees the watch. NULL is allowed.
void tine_watch_close(TineWatch *watch);

#ifdef __cplusplus
}
#endif
