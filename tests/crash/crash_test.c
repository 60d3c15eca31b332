// kill -9 at random instants of a writing process, most of them in the middle of a transaction:
// what was acknowledged is there, what was not is there as a whole or not at all.
//
// The 200 kills are split over several tests, each with a store of its own that lives through all
// of them. The parent chooses each moment by watching where the writer stands, not by time.

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash_model.h"
#include "os/random.h"

enum {
    KILLS_PER_TEST = 25, // of eight tests
    BULK_MESSAGES = 2000,
    BULK_EVERY = 3, // kills
    BATCHES_BEFORE_KILL_MAX = 48,
    EVENTS_PER_PAGE = 1000,
};

typedef struct Crash {
    CrashShared *shared;
    Model *model;
    Random random;
    Engine *engine; // between two kills
    int roots[CRASH_THREADS];
    uint64_t event_sequence; // all before were counted
    size_t kills, kills_inside;
} Crash;

static void open_engine(Crash *crash)
{
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .map_bytes = (size_t)4 << 30,
                                 .is_ephemeral = true, // only the child's commits must be real
                             }};
    ErrorDetail detail = {{0}};
    Error error = engine_open(&options, &detail, &crash->engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
}

// Gives the child sessions to work on, and now and then one of thousands of messages to purge.
static void prepare(Crash *crash)
{
    CrashShared *shared = crash->shared;
    memset(shared, 0, sizeof(*shared));
    shared->cycle = (unsigned)crash->kills;
    shared->seed = random_next(&crash->random);
    for (size_t i = 0; i < CRASH_THREADS; i++) {
        CrashThread *thread = &shared->threads[i];
        memcpy(thread->sessions[0], crash->model->sessions[crash->roots[i]].id, sizeof(IdText));
        thread->session_count = 1;
    }
    if (crash->kills % BULK_EVERY != 0) return;
    IdText bulk;
    engine_new_session(crash->engine, NULL, bulk);
    int index = model_add_session(crash->model, bulk, NO_SESSION);
    ModelSession *session = &crash->model->sessions[index];
    for (size_t i = 0; i < test_scaled(BULK_MESSAGES); i++) {
        engine_append_text(crash->engine, bulk, "one of thousands", session->last_entry);
        session->entry_count = ++session->sequence;
    }
    memcpy(shared->threads[0].bulk, bulk, sizeof(IdText));
}

// The moment: the n-th put, or the commit, of the batch-th transaction.
static void wait_for_moment(Crash *crash, pid_t child)
{
    CrashShared *shared = crash->shared;
    bool at_commit = random_below(&crash->random, 2);
    unsigned batch = 1 + (unsigned)random_below(&crash->random, BATCHES_BEFORE_KILL_MAX);
    unsigned puts = 1 + (unsigned)random_below(&crash->random, 40);
    for (;;) {
        int phase = atomic_load(&shared->phase);
        unsigned batches = atomic_load(&shared->batches);
        if (batches >= batch && at_commit && phase == CRASH_COMMITTING) return;
        // A batch may have fewer puts: then it is one of the next.
        bool is_enough = atomic_load(&shared->puts) >= puts || batches > batch + 8;
        if (batches >= batch && !at_commit && phase == CRASH_PUTTING && is_enough) return;
        int status;
        CHECK_EQ(waitpid(child, &status, WNOHANG), 0); // it must not end by itself
        CHECK_EQ(atomic_load(&shared->is_failed), 0);
        sched_yield();
    }
}

static void kill_one(Crash *crash)
{
    prepare(crash);
    engine_close(crash->engine);
    crash->engine = NULL;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) crash_child_run(crash->shared, test_dir());
    wait_for_moment(crash, child);
    kill(child, SIGKILL);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ(atomic_load(&crash->shared->is_failed), 0);
    crash->kills++;
    if (atomic_load(&crash->shared->phase) != CRASH_IDLE) crash->kills_inside++;
}

// How many of this cycle's events carry an operation's id.
static unsigned events_of(ListEventsResponse *const *pages, size_t page_count,
                          const char *operation_id)
{
    unsigned count = 0;
    for (size_t i = 0; i < page_count; i++) {
        for (size_t j = 0; j < pages[i]->n_events; j++) {
            if (strcmp(pages[i]->events[j]->operation_id, operation_id) == 0) count++;
        }
    }
    return count;
}

static void check_events(Crash *crash)
{
    enum { PAGES_MAX = 64 };
    ListEventsResponse *pages[PAGES_MAX];
    size_t page_count = 0;
    bool more = true;
    while (more) {
        CHECK(page_count < PAGES_MAX);
        ListEventsRequest request = LIST_EVENTS_REQUEST__INIT;
        request.after_sequence = crash->event_sequence;
        request.limit = EVENTS_PER_PAGE;
        ListEventsResponse **page = &pages[page_count++];
        CHECK_EQ(engine_call(crash->engine, METHOD_LIST_EVENTS, &request, NULL, page), ERROR_NONE);
        crash->event_sequence = (*page)->next_after_sequence;
        more = (*page)->more;
    }
    for (size_t i = 0; i < CRASH_THREADS; i++) {
        CrashThread *thread = &crash->shared->threads[i];
        for (unsigned j = 0; j < atomic_load(&thread->begun); j++) {
            CHECK_EQ(events_of(pages, page_count, thread->records[j].operation_id), 1);
        }
    }
    for (size_t i = 0; i < page_count; i++)
        engine_free(pages[i]);
}

// Sends the write of which nobody knows once more, under its operation id: then it has happened
// exactly once, whether it had before or not.
static void finish_records(Crash *crash, CrashThread *thread)
{
    unsigned begun = atomic_load(&thread->begun), done = atomic_load(&thread->acknowledged);
    CHECK(begun - done <= 1);
    for (unsigned i = 0; i < begun; i++) {
        CrashRecord *record = &thread->records[i];
        if (i >= done) CHECK_EQ(crash_call(crash->engine, record), ERROR_NONE);
        model_apply(crash->model, record);
    }
}

// Returns whether there were enough kills, most of them inside. A few kills on a busy machine may
// miss; then there are more of them.
static bool is_enough(const Crash *crash)
{
    size_t wanted = test_scaled(KILLS_PER_TEST);
    if (crash->kills < wanted) return false;
    return 4 * crash->kills_inside >= 3 * crash->kills || crash->kills >= 4 * wanted;
}

static void check_survivor(Crash *crash)
{
    open_engine(crash);
    CHECK_CLEAN(crash->engine);
    for (size_t i = 0; i < CRASH_THREADS; i++) {
        finish_records(crash, &crash->shared->threads[i]);
    }
    check_events(crash);
    bool is_last = is_enough(crash);
    model_compare(crash->model, crash->engine, /* all= */ is_last);
    if (!is_last) return;
    engine_finish_purges(crash->engine);
    CHECK_CLEAN(crash->engine);
    model_compare(crash->model, crash->engine, /* all= */ true);
}

static void kill_many(void)
{
    Crash crash = {.engine = NULL};
    random_seed(&crash.random, test_seed());
    crash.shared =
        mmap(NULL, sizeof(CrashShared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(crash.shared != MAP_FAILED);
    crash.model = calloc(1, sizeof(Model));
    CHECK(crash.model != NULL);
    open_engine(&crash);
    IdText id;
    engine_new_session(crash.engine, NULL, id);
    int top = model_add_session(crash.model, id, NO_SESSION);
    for (size_t i = 0; i < CRASH_THREADS; i++) {
        engine_new_session(crash.engine, crash.model->sessions[top].id, id);
        crash.roots[i] = model_add_session(crash.model, id, top);
    }
    while (!is_enough(&crash)) {
        kill_one(&crash);
        check_survivor(&crash);
    }
    printf("%zu of %zu kills between a batch's first put and its commit's return; %zu messages, "
           "%zu sessions written\n",
           crash.kills_inside, crash.kills, crash.model->message_count, crash.model->session_count);
    CHECK(4 * crash.kills_inside >= 3 * crash.kills);
    engine_close(crash.engine);
    free(crash.model);
    munmap(crash.shared, sizeof(CrashShared));
}

#define KILL_TEST(number)                                                                          \
    TEST(killed_while_writing_##number)                                                            \
    {                                                                                              \
        kill_many();                                                                               \
    }

KILL_TEST(1)
KILL_TEST(2)
KILL_TEST(3)
KILL_TEST(4)
KILL_TEST(5)
KILL_TEST(6)
KILL_TEST(7)
KILL_TEST(8)
