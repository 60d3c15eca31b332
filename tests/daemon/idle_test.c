// A daemon that nobody needs: it is small, and it sleeps.

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "process.h"

enum { IDLE_BYTES_MAX = 12 * 1024 * 1024, BURST_CLIENTS = 64, TEXT_BYTES = 300 * 1024 };

// Appends a message and returns its id.
static void append(Sp sp, const char *session, const char *text, IdText out)
{
    Slice request = request_append(session, text, NULL);
    Slice reply = sp_call(sp, request);
    reply_id(reply, out);
    request_free(&request);
    sp_free(&reply);
}

// Each asks for as much as it may at once, before anybody reads.
static void burst(Tined *tined, const char *message)
{
    Sp clients[BURST_CLIENTS];
    Slice request = request_get_message(message);
    for (size_t i = 0; i < BURST_CLIENTS; i++) {
        clients[i] = sp_open(tined->socket);
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX / 8; j++)
            CHECK(sp_send(clients[i], j, request));
    }
    for (size_t i = 0; i < BURST_CLIENTS; i++) {
        for (uint32_t j = 0; j < CLIENT_REQUESTS_MAX / 8; j++) {
            uint32_t id;
            Slice reply;
            CHECK(sp_receive(clients[i], &id, &reply));
            CHECK_EQ(reply_code(reply), STATUS_OK);
            sp_free(&reply);
        }
        sp_close(&clients[i]);
    }
    request_free(&request);
}

TEST(an_idle_daemon_has_12_mib_at_most_before_and_after_a_burst)
{
    if (IS_SANITIZED) SKIP("a sanitizer has memory of its own");
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    // So it looks often whether it is idle; the connection that stays keeps it from leaving.
    tined_start(&tined, (const char *[]){"--idle-exit", "100ms", NULL});
    Sp sp = sp_open(tined.socket);
    size_t bytes = process_resident_bytes(tined.pid);
    printf("%zu KiB after the start\n", bytes / 1024);
    CHECK(bytes <= IDLE_BYTES_MAX);

    IdText session, message;
    char *text = calloc(1, TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', TEXT_BYTES);
    new_session(sp, session);
    append(sp, session, text, message);
    free(text);
    burst(&tined, message);
    do {
        bytes = process_resident_bytes(tined.pid);
    } while (bytes > IDLE_BYTES_MAX);
    sp_close(&sp);
    CHECK_EQ(tined_wait(&tined), 0);
}

// How often the threads of a process went to sleep, which is how often they woke: the first one,
// and the others together.
static void count_wakes(pid_t pid, uint64_t *out_first, uint64_t *out_others)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    *out_first = *out_others = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", pid, entry->d_name);
        FILE *file = fopen(path, "r");
        CHECK(file != NULL);
        static const char NAME[] = "voluntary_ctxt_switches:";
        while (fgets(line, sizeof(line), file)) {
            if (strncmp(line, NAME, strlen(NAME)) != 0) continue;
            uint64_t *sum = atoi(entry->d_name) == pid ? out_first : out_others;
            *sum += strtoull(line + strlen(NAME), NULL, 10);
        }
        fclose(file);
    }
    closedir(directory);
}

TEST(a_daemon_that_nobody_is_connected_to_sleeps)
{
    if (IS_SANITIZED) SKIP("a sanitizer has threads of its own");
    enum { WATCHED_MS = 6000 }; // longer than a heartbeat, shorter than the time between two ticks
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket);
    check_served(sp);
    sp_close(&sp);

    uint64_t first, others, first_before, others_before;
    int process = pidfd_open(tined.pid, 0);
    CHECK(process >= 0);
    struct pollfd end = {.fd = process, .events = POLLIN};
    // What the client left to do is done, what was committed is flushed to data.mdb, and nobody is
    // looked for who has said no hello.
    _Static_assert(HELLO_WAIT_MS > FLUSH_DATA_MS, "both are over");
    CHECK_EQ(poll(&end, 1, HELLO_WAIT_MS + WATCHED_MS / 6), 0);
    count_wakes(tined.pid, &first_before, &others_before);
    CHECK_EQ(poll(&end, 1, WATCHED_MS), 0);
    count_wakes(tined.pid, &first, &others);
    close(process);
    printf("woken: the first thread %llu times, the others %llu times\n",
           (unsigned long long)(first - first_before),
           (unsigned long long)(others - others_before));
    CHECK(first - first_before <= 2); // the timer that looks for dead readers, if it is its time
    CHECK_EQ(others - others_before, 0);
    CHECK_EQ(tined_stop(&tined, SIGTERM), 0);
}
