// Two systems that are nothing but a record of how they were called.

#include "fake.h"

#include <stdlib.h>

#include <sys/wait.h>
#include <unistd.h>

char calls[CALLS_MAX];
size_t call_count;
size_t text_bytes_of_b = 7;

static void *fake_connect(const Place *place)
{
    (void)place;
    return calloc(1, 1);
}

static void fake_create(void *client, const SessionSpec *spec, Id *out)
{
    (void)client, (void)spec;
    snprintf(out->text, sizeof(out->text), "s");
}

static void fake_append(void *client, const Id *session, const Entry *entry, Id *out)
{
    (void)client, (void)session, (void)entry;
    if (out) snprintf(out->text, sizeof(out->text), "m");
}

static void note(char name)
{
    if (call_count < CALLS_MAX) calls[call_count++] = name;
}

static void history_of_a(void *client, const Id *session, Tally *out)
{
    (void)client, (void)session;
    note('a');
    *out = (Tally){1, 7};
}

static void history_of_b(void *client, const Id *session, Tally *out)
{
    (void)client, (void)session;
    note('b');
    *out = (Tally){1, text_bytes_of_b};
}

#define FAKE                                                                                       \
    .connect = fake_connect, .disconnect = free, .create_session = fake_create,                    \
    .append = fake_append, .durability = DURABILITY_POWER

SYSTEM(b) = {.name = "b",
             .about = "the \"second\" one",
             .order = 2,
             .reads_as = "a",
             .history = history_of_b,
             FAKE};
SYSTEM(a) = {.name = "a", .about = "the first one", .order = 1, .history = history_of_a, FAKE};
SYSTEM(c) = {.name = "c", .about = "has no history", .order = 3, FAKE};

bool fails(void (*run)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 1;
}
