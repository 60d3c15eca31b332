// libtine against the peer that the clients of all languages are tested against: in each of its
// modes a call ends by its deadline with an error, and leaves no descriptor behind.

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "harness.h"
#include "tine_calls.h"

enum { TIMEOUT_MS = 100, CALLS = 2 };

typedef struct Peer {
    pid_t pid;
    char url[300];
} Peer;

static Peer peer_start(const char *mode)
{
    Peer peer;
    char path[256];
    int ready[2];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), mode);
    snprintf(peer.url, sizeof(peer.url), "ipc://%s", path);
    CHECK_EQ(pipe(ready), 0);
    peer.pid = fork();
    CHECK(peer.pid >= 0);
    if (peer.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], STDOUT_FILENO);
        close(STDIN_FILENO);
        execl(WIRE_PEER, WIRE_PEER, "--socket", path, "--mode", mode, NULL);
        _exit(127);
    }
    close(ready[1]);
    char word[8];
    CHECK(read(ready[0], word, sizeof(word)) > 0);
    close(ready[0]);
    return peer;
}

static void peer_stop(Peer *peer)
{
    kill(peer->pid, SIGTERM);
    int status;
    CHECK_EQ(waitpid(peer->pid, &status, 0), peer->pid);
    CHECK_EQ(status, 0);
}

static size_t descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    size_t count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

// Has little time if it is to end by that, and any time otherwise: the machine may be busy.
static int ask(Tine *tine, const char *session_id, int wanted, TineStatus *status)
{
    Tine__V1__GetSessionRequest request = TINE__V1__GET_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session_id;
    Tine__V1__GetSessionResponse *reply = NULL;
    int64_t timeout_ms = wanted == STATUS_DEADLINE_EXCEEDED ? TIMEOUT_MS : HARNESS_PATIENCE_MS;
    TineCallOptions options = {.timeout_ms = timeout_ms, .no_retry = true, .out_status = status};
    int code = tine_get_session(tine, &options, &request, &reply);
    if (reply) tine__v1__get_session_response__free_unpacked(reply, NULL);
    return code;
}

// What each mode makes of a call, and of one after it on what may be the same connection.
typedef struct Outcome {
    const char *mode;
    int code, code_then;
} Outcome;

static void calls_end_with(const Outcome *outcome)
{
    Peer peer = peer_start(outcome->mode);
    size_t before = descriptors();
    Tine *tine;
    TineStatus status;
    CHECK_EQ(tine_open(peer.url, &status, &tine), STATUS_OK);
    for (int i = 0; i < CALLS; i++) {
        int wanted = i == 0 ? outcome->code : outcome->code_then;
        int code = ask(tine, "x", wanted, &status);
        printf("%s: %d %s\n", outcome->mode, code, status.message);
        CHECK_EQ(code, wanted);
    }
    tine_close(tine);
    CHECK_EQ(descriptors(), before);
    peer_stop(&peer);
}

TEST(a_call_to_a_hostile_peer_ends_with_an_error_and_leaks_nothing)
{
    static const Outcome OUTCOMES[] = {
        {"garbage", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"bad-hello", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"half-hello", STATUS_DEADLINE_EXCEEDED, STATUS_DEADLINE_EXCEEDED},
        {"silent", STATUS_DEADLINE_EXCEEDED, STATUS_DEADLINE_EXCEEDED},
        {"hello-then-silent", STATUS_DEADLINE_EXCEEDED, STATUS_DEADLINE_EXCEEDED},
        {"hang-up", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"hang-up-after-hello", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"hang-up-on-request", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"half-frame", STATUS_DEADLINE_EXCEEDED, STATUS_UNAVAILABLE}, // the next one ends it
        {"half-frame-close", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"length-bomb", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"length-huge", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"length-over", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"wrong-id", STATUS_DEADLINE_EXCEEDED, STATUS_DEADLINE_EXCEEDED},
        {"no-id", STATUS_UNAVAILABLE, STATUS_UNAVAILABLE},
        {"garbage-reply", STATUS_INTERNAL, STATUS_INTERNAL},
        {"twice", STATUS_OK, STATUS_OK},
        {"flood", STATUS_DEADLINE_EXCEEDED, STATUS_DEADLINE_EXCEEDED},
    };
    for (size_t i = 0; i < sizeof(OUTCOMES) / sizeof(*OUTCOMES); i++)
        calls_end_with(&OUTCOMES[i]);
}

TEST(the_peer_answers_as_it_is_asked)
{
    Peer peer = peer_start("status");
    Tine *tine;
    TineStatus status;
    CHECK_EQ(tine_open(peer.url, &status, &tine), STATUS_OK);
    for (int code = 1; code <= STATUS_UNAUTHENTICATED; code++) {
        char text[64];
        snprintf(text, sizeof(text), "code:%d:REASON_%d:why: %d", code, code, code);
        CHECK_EQ(ask(tine, text, code, &status), code);
        CHECK_EQ(status.code, code);
        CHECK(strncmp(status.reason, "REASON_", 7) == 0);
        CHECK(strncmp(status.message, "why: ", 5) == 0);
    }
    CHECK_EQ(ask(tine, "anything", STATUS_OK, &status), STATUS_OK);
    CHECK_EQ(ask(tine, "delay:20", STATUS_OK, &status), STATUS_OK);
    CHECK_EQ(ask(tine, "silent", STATUS_DEADLINE_EXCEEDED, &status), STATUS_DEADLINE_EXCEEDED);
    CHECK_EQ(ask(tine, "anything", STATUS_OK, &status), STATUS_OK);
    tine_close(tine);
    peer_stop(&peer);
}
