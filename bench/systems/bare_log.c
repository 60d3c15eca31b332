// A bare log: the limit of what any durable store can do on this disk. An append is one write of
// one record, of the size of the record that tine appends, into a file that was filled before, and
// one flush of its data. It reads nothing.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

enum {
    EXTRA_BYTES = 1360, // of tine's record, beside the text
    FILE_BYTES = 16 << 20,
    PIECE_BYTES = 1 << 20,
};

typedef struct Client {
    int file;
    off_t end;
    size_t sessions;
    uint8_t *record;
} Client;

static void *bare_connect(const Place *place)
{
    char path[PLACE_BYTES_MAX + 16];
    snprintf(path, sizeof(path), "%s/log", place->directory);
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    client->record = calloc(1, PIECE_BYTES);
    client->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(client->record != NULL && client->file >= 0, "cannot make %s", path);
    for (off_t at = 0; at < FILE_BYTES; at += PIECE_BYTES)
        require(pwrite(client->file, client->record, PIECE_BYTES, at) == PIECE_BYTES, "write");
    require(fsync(client->file) == 0, "fsync");
    return client;
}

static void bare_disconnect(void *context)
{
    Client *client = context;
    close(client->file);
    free(client->record);
    free(client);
}

static void bare_create(void *context, const SessionSpec *spec, Id *out)
{
    (void)spec;
    Client *client = context;
    snprintf(out->text, sizeof(out->text), "%zu", client->sessions++);
}

static void bare_append(void *context, const Id *session, const Entry *entry, Id *out)
{
    Client *client = context;
    size_t size = entry->text_bytes + EXTRA_BYTES;
    require(size <= PIECE_BYTES, "a text of %zu bytes", entry->text_bytes);
    if (client->end + (off_t)size > FILE_BYTES) client->end = 0;
    memcpy(client->record, entry->text, entry->text_bytes);
    require(pwrite(client->file, client->record, size, client->end) == (ssize_t)size, "write");
    require(fdatasync(client->file) == 0, "fdatasync");
    client->end += (off_t)size;
    if (out) *out = *session;
}

SYSTEM(bare_log) = {
    .name = "bare-log",
    .about = "one write of a record into a filled file and its fdatasync, nothing else",
    .order = 19,
    .durability = DURABILITY_POWER,
    .is_limit = true,
    .is_private = true,
    .is_one_client = true,
    .connect = bare_connect,
    .disconnect = bare_disconnect,
    .fill_open = bare_connect,
    .fill_close = bare_disconnect,
    .create_session = bare_create,
    .append = bare_append,
};
