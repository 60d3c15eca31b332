// The other processes of the benchmark: tined, echo servers, and peers that mean harm.
//
// What this program serves itself it serves as a child that was started anew:
//
//     bench_transport --serve KIND SOCKET ARGUMENT

#pragma once

#include <sys/types.h>

#include "bench.h"

enum { SOCKET_BYTES_MAX = 108 };

typedef struct Peer {
    pid_t pid;
    char socket[SOCKET_BYTES_MAX]; // in a directory of its own, mode 0700
    char store[512];               // of tined: removed with it
} Peer;

// Starts tined on the store in `store`, which is made if it is missing, and waits until it
// answers. `program` is its path; NULL: the one that was built with this benchmark.
void tined_start(Peer *peer, const char *program, const char *store);
// The same with more arguments, which end with NULL.
void tined_start_with(Peer *peer, const char *program, const char *store, const char *const *more);

// Starts `--serve KIND` and waits until its socket is there. `argument` may be "".
void peer_start(Peer *peer, const char *kind, const char *argument);

// Starts `--serve KIND` on the socket of another peer.
void peer_start_on(Peer *peer, const char *kind, const char *socket, const char *argument);

// Another program, in steps: a place for its socket, in a directory of its own; the program, whose
// arguments name that socket and end with NULL; and waiting until somebody listens there.
void peer_place(Peer *peer);
void peer_spawn(Peer *peer, const char *program, const char *const *arguments);
void peer_wait(const Peer *peer, const char *what);

// Ends it; removes its socket and, if tined_start made one, its store.
void peer_stop(Peer *peer);

// What a process has used since it was started.
typedef struct ProcessUsage {
    uint64_t switches; // context switches of all threads, the ended ones left out
    double cpu_ms;
    size_t threads;
} ProcessUsage;

void process_usage(pid_t pid, ProcessUsage *out);

typedef struct ProcessMemory {
    double rss_mib, anonymous_mib, file_mib; // file: of which pages of programs and of the store
} ProcessMemory;

void process_memory(pid_t pid, ProcessMemory *out);

// What a process has had written to disks since it was started, in whole pages: counted when it
// made them dirty, not the file system's own journal. NAN: the kernel does not say.
double process_written_bytes(pid_t pid);

// The kinds: each serves, or does its harm, until it is killed.
void serve_raw_echo(const char *socket);
void serve_nng_echo(const char *socket);
void serve_grpc(const char *socket, const char *reply_file);
void serve_harm(const char *kind, const char *socket, const char *session);
