// The sizes of tine's requests and replies.

#include "echo_sizes.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    REQUEST_BYTES = 64,
    RECEIPT_BYTES = 170,
    SESSION_BYTES = 395,
    MESSAGE_EXTRA_BYTES = 150,
    APPEND_EXTRA_BYTES = 160,
    REQUEST_BYTES_MAX = 4096,
};

// An id says what its session's history has: messages and bytes.
static void id_of(Id *out, size_t messages, size_t bytes)
{
    snprintf(out->text, sizeof(out->text), "%zu/%zu", messages, bytes);
}

static Tally tally_of(const Id *id)
{
    char *rest;
    size_t messages = strtoull(id->text, &rest, 10);
    return (Tally){messages, *rest ? strtoull(rest + 1, NULL, 10) : 0};
}

void *echo_fill_open(const Place *place)
{
    (void)place;
    return calloc(1, 1);
}

void echo_fill_close(void *client)
{
    free(client);
}

void echo_create(void *client, const SessionSpec *spec, Id *out)
{
    (void)client, (void)spec;
    id_of(out, 0, 0);
}

void echo_fork(void *client, const Id *session, const Id *message, Id *out)
{
    (void)client, (void)message;
    *out = *session;
}

void echo_count(void *client, const Id *session, const Entry *entry, Id *out)
{
    (void)client;
    Tally tally = tally_of(session);
    // The session's id is where the count is kept: its memory is the caller's.
    id_of((Id *)(uintptr_t)session, tally.messages + 1,
          tally.text_bytes + entry->text_bytes + MESSAGE_EXTRA_BYTES);
    if (out) *out = *session;
}

EchoSizes echo_of_get(void)
{
    return (EchoSizes){REQUEST_BYTES, SESSION_BYTES};
}

EchoSizes echo_of_append(const Entry *entry)
{
    size_t size = entry->text_bytes + APPEND_EXTRA_BYTES;
    return (EchoSizes){size < REQUEST_BYTES_MAX ? size : REQUEST_BYTES_MAX, RECEIPT_BYTES};
}

EchoSizes echo_of_history(const Id *session, Tally *out)
{
    Tally tally = tally_of(session);
    *out = (Tally){tally.messages, 0};
    return (EchoSizes){REQUEST_BYTES, tally.text_bytes ? tally.text_bytes : 1};
}

EchoSizes echo_of_list(size_t limit)
{
    return (EchoSizes){REQUEST_BYTES, limit * SESSION_BYTES};
}
