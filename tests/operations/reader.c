// A process that reads. What goes through its socket is this program's own structs.

#include "reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_direct.h"
#include "channel_sp.h"
#include "harness.h"

typedef enum AskKind { ASK_OPEN, ASK_READ, ASK_CLOSE } AskKind;

typedef struct Ask {
    AskKind kind;
    size_t size; // of what follows: a path, or a request
    int64_t deadline_ns, connect_until_ns;
    bool waits_at_first;
} Ask;

typedef struct Answer {
    int code;
    bool is_broken, was_sent;
    TineStatus status;
    size_t size; // of the response that follows
} Answer;

typedef struct ReaderChannel {
    Channel channel;
    Channel *calls; // owned
    pthread_mutex_t mutex;
    uint64_t reads;
} ReaderChannel;

static int reader_socket = -1;

static bool give(int fd, const void *bytes, size_t size)
{
    return size == 0 || send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool take(int fd, void *bytes, size_t size)
{
    return size == 0 || recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

static void read_and_answer(Channel *channel, int fd, const Ask *ask, const uint8_t *request)
{
    Buffer response = {.bytes = NULL};
    Answer answer = {.code = 0};
    ChannelCall call = {
        .request = slice(request, ask->size),
        .is_read = true,
        .deadline_ns = ask->deadline_ns,
        .connect_until_ns = ask->connect_until_ns,
        .waits_at_first = ask->waits_at_first,
        .response = &response,
    };
    answer.code = channel->call(channel, &call, &answer.status);
    answer.is_broken = call.is_broken;
    answer.was_sent = call.was_sent;
    answer.size = buffer_size(&response);
    if (!give(fd, &answer, sizeof(answer)) ||
        !give(fd, buffer_slice(&response).bytes, answer.size)) {
        _exit(1);
    }
    buffer_free(&response);
}

static void serve(int fd, Clock clock)
{
    Channel *channel = NULL;
    for (Ask ask; take(fd, &ask, sizeof(ask));) {
        uint8_t *bytes = calloc(1, ask.size + 1);
        if (!bytes || !take(fd, bytes, ask.size)) _exit(1);
        TineClientStats stats = {.is_direct = false};
        switch (ask.kind) {
        case ASK_OPEN:
            if (channel_sp_open((const char *)bytes, NULL, &channel) ||
                channel_direct_open(channel, NULL, &channel)) {
                _exit(1);
            }
            channel_direct_for_test(channel, clock, 0);
            break;
        case ASK_READ: read_and_answer(channel, fd, &ask, bytes); break;
        case ASK_CLOSE:
            channel_direct_stats(channel, &stats);
            channel->close(channel);
            if (!give(fd, &stats, sizeof(stats))) _exit(1);
            break;
        }
        free(bytes);
    }
    _exit(0);
}

void reader_start(Clock clock)
{
    if (reader_socket >= 0) return;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        serve(ends[1], clock);
    }
    close(ends[1]);
    reader_socket = ends[0];
}

static int reader_call(Channel *channel, ChannelCall *call, TineStatus *status)
{
    ReaderChannel *reader = (ReaderChannel *)channel;
    // One that waits there for events keeps nobody from reading.
    if (!call->is_read || pthread_mutex_trylock(&reader->mutex) != 0) {
        return reader->calls->call(reader->calls, call, status);
    }
    reader->reads++;
    Ask ask = {
        .kind = ASK_READ,
        .size = call->request.size,
        .deadline_ns = call->deadline_ns,
        .connect_until_ns = call->connect_until_ns,
        .waits_at_first = call->waits_at_first,
    };
    Answer answer;
    uint8_t *room;
    CHECK(give(reader_socket, &ask, sizeof(ask)));
    CHECK(give(reader_socket, call->request.bytes, ask.size));
    CHECK(take(reader_socket, &answer, sizeof(answer)));
    CHECK_EQ(buffer_reset(call->response, 0), ERROR_NONE);
    CHECK_EQ(buffer_reserve(call->response, answer.size, &room), ERROR_NONE);
    CHECK(take(reader_socket, room, answer.size));
    buffer_grow(call->response, answer.size);
    call->is_broken = answer.is_broken;
    call->was_sent = answer.was_sent;
    if (status && answer.code) *status = answer.status;
    pthread_mutex_unlock(&reader->mutex);
    return answer.code;
}

static Feed *reader_feed_open(Channel *channel)
{
    Channel *calls = ((ReaderChannel *)channel)->calls;
    return calls->feed_open(calls);
}

static void reader_close(Channel *channel)
{
    ReaderChannel *reader = (ReaderChannel *)channel;
    Ask ask = {.kind = ASK_CLOSE};
    TineClientStats stats;
    CHECK(give(reader_socket, &ask, sizeof(ask)));
    CHECK(take(reader_socket, &stats, sizeof(stats)));
    for (int i = 0; i < TINE_FALLBACK_COUNT; i++) {
        if (i == TINE_FALLBACK_ASKS_SERVER || stats.fallbacks[i] == 0) continue;
        printf("%s: %s\n", tine_fallback_name((TineFallback)i), stats.last_why);
        CHECK_EQ(stats.fallbacks[i], 0);
    }
    CHECK_EQ(stats.direct_reads + stats.fallbacks[TINE_FALLBACK_ASKS_SERVER], reader->reads);
    reader->calls->close(reader->calls);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}

Channel *reader_channel(Channel *calls, const char *path)
{
    ReaderChannel *reader = calloc(1, sizeof(ReaderChannel));
    CHECK(reader);
    reader->calls = calls;
    pthread_mutex_init(&reader->mutex, NULL);
    reader->channel = (Channel){.call = reader_call,
                                .close = reader_close,
                                .feed_open = reader_feed_open,
                                .is_remote = true};
    Ask ask = {.kind = ASK_OPEN, .size = strlen(path)};
    CHECK(give(reader_socket, &ask, sizeof(ask)));
    CHECK(give(reader_socket, path, ask.size));
    return &reader->channel;
}
