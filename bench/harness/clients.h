// Clients that are processes of their own.
//
// They are forked by a process that has been set aside before anything was opened (the nursery), so
// that no library finds itself forked in the middle of its work. What they share with this one is
// memory that was there before.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

enum { CLIENTS_MAX_PROCESSES = 64 };

typedef struct ClientGroup ClientGroup;
struct Lane;

// Sets the nursery aside. First thing in main; without it there are no clients.
void clients_begin(void);
void clients_end(void);

// Starts `count` clients of lane->system at lane->place: each connects and waits. `call` is done
// over and over in each turn. The lane is copied. Any number of groups can
// be there.
ClientGroup *clients_start(const struct Lane *lane, size_t count, void (*call)(struct Lane *lane));

// A turn of all of them, `ns` long: none begins a call after its end. With clients_turn_begin the
// caller does something else until it calls clients_turn_end.
void clients_turn_begin(ClientGroup *group, int64_t ns);

typedef struct ClientTurn {
    size_t calls;
    double cpu_ms;
    double written_bytes;
    double rss_kib;    // of the largest
    double per_second; // of all together
} ClientTurn;

// `samples` may be NULL.
void clients_turn_end(ClientGroup *group, Samples *samples, ClientTurn *out);

void clients_stop(ClientGroup *group);
