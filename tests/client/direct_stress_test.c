// Direct reads under writers, process by process: each history read is a snapshot, whole up to its
// end, and no older than what was acknowledged before it.
//
// Each writer appends numbers, some of them with much behind, and goes on to another session after
// some: to a new one, or a fork. Readers are killed wherever they are, and others take their place.
// `make direct-long` runs this for ten minutes.

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "steps.h"
#include "tined.h"

enum {
    WRITERS = 8,
    READERS = 8,
    EPOCH_MESSAGES = 100,
    EPOCHS_KEPT = 64,
    LARGE_EVERY = 7, // … numbers there is one of many pieces
    LARGE_BYTES = 12 * 1000,
    LOOK_MS = 20,
    KILL_EVERY = 15, // looks
    SECONDS_DEFAULT = 20,
};

typedef struct Board {
    struct {
        Id sessions[EPOCHS_KEPT]; // of the epochs, in turn
        _Alignas(64) atomic_uint acknowledged;
    } writers[WRITERS];
    atomic_bool is_over;
    atomic_uint_fast64_t reads, fallbacks;
} Board;

// A number's text: itself, and behind some a letter, over and over.
static void text_make(unsigned number, char out[LARGE_BYTES])
{
    int size = snprintf(out, LARGE_BYTES, "%u", number);
    if (number % LARGE_EVERY != 0) return;
    memset(out + size, 'a' + (int)(number % 26), (size_t)(LARGE_BYTES - 1 - size));
    out[LARGE_BYTES - 1] = '\0';
}

static Id fork_of(Tine *tine, const char *session)
{
    Tine__V1__ForkSessionRequest request = TINE__V1__FORK_SESSION_REQUEST__INIT;
    Tine__V1__ForkSessionResponse *response;
    request.session_id = (char *)(uintptr_t)session;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request.at_head = true;
    CHECK_EQ(tine_fork_session(tine, NULL, &request, &response), 0);
    Id id;
    snprintf(id.text, sizeof(id.text), "%s", response->session->id);
    tine__v1__fork_session_response__free_unpacked(response, NULL);
    return id;
}

static void write_numbers(Board *board, const Tined *tined, unsigned writer)
{
    Tine *tine = open_ok(tined->url);
    Id session = {{0}};
    for (unsigned number = 0; !atomic_load(&board->is_over); number++) {
        unsigned epoch = number / EPOCH_MESSAGES;
        if (number % EPOCH_MESSAGES == 0) {
            session = epoch % 2 ? fork_of(tine, session.text) : session_new(tine);
            board->writers[writer].sessions[epoch % EPOCHS_KEPT] = session;
        }
        char text[LARGE_BYTES];
        text_make(number, text);
        append_text(tine, session.text, text);
        atomic_store(&board->writers[writer].acknowledged, number + 1);
    }
    tine_close(tine);
}

typedef struct Numbers {
    unsigned next;
    bool is_torn;
} Numbers;

static bool count_on(void *context, const TineLent *lent)
{
    Numbers *numbers = context;
    uint8_t *bytes = malloc(lent->size);
    size_t size = 0;
    for (size_t i = 0; bytes && i < lent->piece_count; i++) {
        memcpy(bytes + size, lent->pieces[i].bytes, lent->pieces[i].size);
        size += lent->pieces[i].size;
    }
    Tine__V1__Message *message = bytes ? tine__v1__message__unpack(NULL, size, bytes) : NULL;
    char expected[LARGE_BYTES];
    text_make(numbers->next, expected);
    numbers->is_torn =
        !message || message->n_parts != 1 || strcmp(message->parts[0]->text->text, expected) != 0;
    if (message) tine__v1__message__free_unpacked(message, NULL);
    free(bytes);
    numbers->next++;
    return !numbers->is_torn;
}

static void read_one(Board *board, Tine *tine, unsigned writer)
{
    unsigned acknowledged = atomic_load(&board->writers[writer].acknowledged);
    if (acknowledged == 0) return;
    unsigned epoch = (acknowledged - 1) / EPOCH_MESSAGES;
    Id session = board->writers[writer].sessions[epoch % EPOCHS_KEPT];
    unsigned now = atomic_load(&board->writers[writer].acknowledged);
    if (now / EPOCH_MESSAGES - epoch >= EPOCHS_KEPT - 1) return; // its place may be another's
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    Numbers numbers = {.next = (epoch - epoch % 2) * EPOCH_MESSAGES};
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    int code = tine_read_messages(tine, &options, &request, count_on, &numbers, NULL);
    if (code) printf("%s: %s\n", status.reason, status.message);
    CHECK_EQ(code, 0);
    CHECK(!numbers.is_torn);
    CHECK(numbers.next >= acknowledged);
    CHECK(numbers.next <= (epoch + 1) * EPOCH_MESSAGES);
}

static void read_numbers(Board *board, const Tined *tined, unsigned reader)
{
    Tine *tine = open_with(tined->url, (TineOpenOptions){.flags = TINE_DIRECT_READS});
    for (unsigned i = reader; !atomic_load(&board->is_over); i++)
        read_one(board, tine, i % WRITERS);
    TineClientStats stats;
    tine_client_stats(tine, &stats);
    if (stats.last_why[0]) printf("%s\n", stats.last_why);
    atomic_fetch_add(&board->reads, stats.direct_reads);
    for (int i = 0; i < TINE_FALLBACK_COUNT; i++)
        atomic_fetch_add(&board->fallbacks, stats.fallbacks[i]);
    tine_close(tine);
}

static pid_t start(void (*run)(Board *, const Tined *, unsigned), Board *board, const Tined *tined,
                   unsigned number)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(board, tined, number);
    fflush(NULL);
    _exit(0);
}

static void reader_replace(Board *board, const Tined *tined, pid_t *reader, unsigned number)
{
    int how;
    CHECK_EQ(kill(*reader, SIGKILL), 0);
    CHECK_EQ(waitpid(*reader, &how, 0), *reader);
    CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    *reader = start(read_numbers, board, tined, number);
}

TEST(histories_read_directly_under_writers_are_whole)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    Board *board =
        mmap(NULL, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    const char *said = getenv("TINE_DIRECT_SECONDS");
    size_t seconds = said ? (size_t)strtoul(said, NULL, 10) : test_scaled(SECONDS_DEFAULT);
    pid_t children[WRITERS + READERS];
    for (unsigned i = 0; i < WRITERS; i++)
        children[i] = start(write_numbers, board, &tined, i);
    for (unsigned i = 0; i < READERS; i++)
        children[WRITERS + i] = start(read_numbers, board, &tined, i);
    int64_t end_ns = clock_monotonic_ns() + (int64_t)seconds * 1000000000;
    pid_t ended = 0;
    int how = 0;
    unsigned killed = 0;
    for (unsigned looks = 1; ended == 0 && clock_monotonic_ns() < end_ns; looks++) {
        ended = waitpid(-1, &how, WNOHANG); // only one that fails ends before it is told to
        if (ended == tined.pid) tined.pid = 0;
        (void)poll(NULL, 0, LOOK_MS);
        if (ended != 0 || looks % KILL_EVERY != 0) continue;
        unsigned number = killed++ % READERS;
        reader_replace(board, &tined, &children[WRITERS + number], number);
    }
    atomic_store(&board->is_over, true);
    CHECK_EQ(ended, 0);
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        CHECK_EQ(waitpid(children[i], &how, 0), children[i]);
        CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    unsigned written = 0;
    for (size_t i = 0; i < WRITERS; i++)
        written += atomic_load(&board->writers[i].acknowledged);
    printf("%zu s: %u appends, %llu histories read directly, %llu by call, %u readers killed\n",
           seconds, written, (unsigned long long)board->reads, (unsigned long long)board->fallbacks,
           killed);
    CHECK(board->reads > 0);
    CHECK_EQ(board->fallbacks, 0);
    munmap(board, sizeof(Board));
}
