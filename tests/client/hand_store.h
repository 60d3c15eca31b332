// A store and its bus by hand: it keeps events that the test makes up, lists them to whoever asks,
// and tells subscribers what the test says, when it says so, true or not. Nothing of libtine is in
// it.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "wire_server.h"

typedef struct HandStore HandStore;

// What the bus does with a subscriber that has just come. NULL: says hello, sends a heartbeat, and
// counts it among those that hand_tell and its like send to.
typedef void (*HandGreeting)(WireConnection *connection);

// One of its own, for all who come from now on; when it returns the connection is closed.
void hand_greet_with(HandStore *store, HandGreeting greeting);

HandStore *hand_open(void);
void hand_close(HandStore **store);
const char *hand_url(const HandStore *store); // "ipc://…"; borrowed

// Keeps an event, of a session or of none (NULL), and returns its sequence. Tells nobody.
uint64_t hand_keep(HandStore *store, const char *session, const char *type);

// Sends a kept event to all subscribers, or one that is not kept.
void hand_tell(HandStore *store, uint64_t sequence);
uint64_t hand_keep_and_tell(HandStore *store, const char *session, const char *type);
void hand_broadcast(HandStore *store, const char *session, const char *type);
void hand_heartbeat(HandStore *store, uint64_t newest_sequence);

// Sends a message: one Event that says what the test likes, of another store if it likes.
void hand_tell_lie(HandStore *store, const char *instance_id, uint64_t sequence);

// Sends bytes as they are.
void hand_send(HandStore *store, Slice bytes);

void hand_cut(HandStore *store); // hangs up on all subscribers

// Waits until so many subscribers were greeted, all in all; with a greeting of the test's own:
// until it has returned so often.
void hand_wait_subscribers(HandStore *store, unsigned count);
unsigned hand_subscribers(HandStore *store);

unsigned hand_lists(HandStore *store); // how often ListEvents was called
