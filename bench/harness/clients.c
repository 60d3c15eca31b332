// Clients that are processes of their own.
//
// The memory shared with the nursery holds the slots of all clients; a group is a range of them. A
// client that fails says why and marks its slot, so that whoever waits for it does not wait on.

#include "clients.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "run.h"

enum { SLOTS = 1024, SLOT_SAMPLES_MAX = 16384, WAIT_SECONDS = 120 };

typedef struct Slot {
    sem_t go, done;
    bool is_used, is_over, has_failed;
    int64_t end_ns; // of the turn, for all alike
    size_t calls;
    int64_t cpu_ns;
    double rss_kib, written_bytes;
    size_t sample_count;
    int64_t samples[SLOT_SAMPLES_MAX];
} Slot;

typedef struct Shared {
    sem_t asked, answered;
    bool is_over;
    Lane lane;
    Case the_case; // of the lane: what it points to is not there in the nursery
    void (*call)(Lane *lane);
    size_t index, slot;
    Slot slots[SLOTS];
} Shared;

struct ClientGroup {
    size_t slots[CLIENTS_MAX_PROCESSES];
    size_t count;
    int64_t begin_ns; // of the turn
};

static Shared *shared;
static Slot *own_slot; // in a client
static pid_t nursery;

static void wait_for(sem_t *semaphore)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    while (sem_timedwait(semaphore, &until) != 0)
        require(errno == EINTR, "a client does not answer for %d s", WAIT_SECONDS);
}

static int64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void fail_own_slot(void)
{
    if (!own_slot) return;
    own_slot->has_failed = true;
    sem_post(&own_slot->done);
}

static void client_turn(Lane *lane, void (*call)(Lane *lane), Slot *slot)
{
    int64_t cpu0 = cpu_ns(), now = clock_monotonic_ns();
    double written0 = process_written_bytes(getpid());
    slot->calls = slot->sample_count = 0;
    while (now < slot->end_ns) {
        int64_t t0 = now;
        call(lane);
        now = clock_monotonic_ns();
        slot->calls++;
        if (slot->sample_count < SLOT_SAMPLES_MAX) slot->samples[slot->sample_count++] = now - t0;
    }
    slot->cpu_ns = cpu_ns() - cpu0;
    slot->written_bytes = process_written_bytes(getpid()) - written0;
    ProcessMemory memory;
    process_memory(getpid(), &memory);
    slot->rss_kib = memory.rss_mib * 1024;
}

// In a process of its own; does not return.
static void client_main(Slot *slot)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_slot = slot;
    atexit(fail_own_slot);
    void (*call)(Lane *) = shared->call;
    Lane lane = shared->lane;
    Case the_case = shared->the_case;
    lane.the_case = &the_case;
    lane.index = shared->index;
    lane.samples = (Samples){.values = NULL};
    if (lane.system->connect) lane.client = lane.system->connect(&lane.place);
    sem_post(&shared->answered);
    for (;;) {
        while (sem_wait(&slot->go) != 0)
            continue;
        if (slot->is_over) break;
        client_turn(&lane, call, slot);
        sem_post(&slot->done);
    }
    if (lane.system->disconnect) lane.system->disconnect(lane.client);
    own_slot = NULL;
    sem_post(&slot->done);
    _exit(0);
}

static void nursery_main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        while (sem_wait(&shared->asked) != 0)
            continue;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (shared->is_over) _exit(0);
        pid_t pid = fork();
        if (pid == 0) client_main(&shared->slots[shared->slot]);
        if (pid < 0) sem_post(&shared->answered);
    }
}

void clients_begin(void)
{
    shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shared != MAP_FAILED, "no shared memory");
    sem_init(&shared->asked, /* pshared= */ 1, 0);
    sem_init(&shared->answered, 1, 0);
    for (size_t i = 0; i < SLOTS; i++) {
        sem_init(&shared->slots[i].go, 1, 0);
        sem_init(&shared->slots[i].done, 1, 0);
    }
    nursery = fork();
    require(nursery >= 0, "no process");
    if (nursery == 0) nursery_main();
}

void clients_end(void)
{
    shared->is_over = true;
    sem_post(&shared->asked);
    while (waitpid(nursery, NULL, 0) < 0 && errno == EINTR)
        continue;
    munmap(shared, sizeof(Shared));
}

static size_t slot_take(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (shared->slots[i].is_used) continue;
        shared->slots[i].is_used = true;
        shared->slots[i].is_over = shared->slots[i].has_failed = false;
        return i;
    }
    require(false, "more than %d clients", SLOTS);
    return 0;
}

ClientGroup *clients_start(const Lane *lane, size_t count, void (*call)(Lane *lane))
{
    ClientGroup *group = calloc(1, sizeof(ClientGroup));
    require(group != NULL && count <= CLIENTS_MAX_PROCESSES, "too many clients");
    shared->lane = *lane;
    shared->the_case = *lane->the_case;
    shared->call = call;
    for (size_t i = 0; i < count; i++) {
        shared->index = i;
        shared->slot = group->slots[group->count++] = slot_take();
        sem_post(&shared->asked);
        wait_for(&shared->answered);
    }
    return group;
}

void clients_turn_begin(ClientGroup *group, int64_t ns)
{
    group->begin_ns = clock_monotonic_ns();
    for (size_t i = 0; i < group->count; i++) {
        shared->slots[group->slots[i]].end_ns = group->begin_ns + ns;
        sem_post(&shared->slots[group->slots[i]].go);
    }
}

void clients_turn_end(ClientGroup *group, Samples *samples, ClientTurn *out)
{
    *out = (ClientTurn){.calls = 0};
    for (size_t i = 0; i < group->count; i++) {
        Slot *slot = &shared->slots[group->slots[i]];
        wait_for(&slot->done);
        require(!slot->has_failed, "a client has failed");
        out->calls += slot->calls;
        out->cpu_ms += (double)slot->cpu_ns / 1e6;
        out->written_bytes += slot->written_bytes;
        if (slot->rss_kib > out->rss_kib) out->rss_kib = slot->rss_kib;
        for (size_t j = 0; samples && j < slot->sample_count; j++)
            samples_add(samples, slot->samples[j]);
    }
    // Until the last one was done: who has waited long has the others wait in this figure, too.
    double spent_ns = (double)(clock_monotonic_ns() - group->begin_ns);
    out->per_second = (double)out->calls * 1e9 / spent_ns;
}

void clients_stop(ClientGroup *group)
{
    for (size_t i = 0; i < group->count; i++) {
        Slot *slot = &shared->slots[group->slots[i]];
        slot->is_over = true;
        sem_post(&slot->go);
        wait_for(&slot->done);
        slot->is_used = false;
    }
    free(group);
}
