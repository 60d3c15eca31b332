// Echoes as systems: each read is answered with as many bytes as tine's reply would have. A client
// only counts what was appended; nothing is stored.
//
// What the reads of a chain of forks will have to return is added up while it is made, so only the
// last session of a chain, and sessions without forks, can be asked for.

#pragma once

#include "system.h"

typedef struct EchoSizes {
    size_t request_bytes, reply_bytes;
} EchoSizes;

void echo_create(void *client, const SessionSpec *spec, Id *out);
void echo_fork(void *client, const Id *session, const Id *message, Id *out);
void echo_count(void *client, const Id *session, const Entry *entry, Id *out); // fills
EchoSizes echo_of_get(void);
EchoSizes echo_of_append(const Entry *entry);
EchoSizes echo_of_history(const Id *session, Tally *out);
EchoSizes echo_of_list(size_t limit);
void *echo_fill_open(const Place *place);
void echo_fill_close(void *client);
