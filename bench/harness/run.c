// A run.

#include "run.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "os/clock.h"
#include "text.h"

enum {
    DIRECTORIES_OPEN_MAX = 16,
    TURN_CALLS_MAX = 20000,
    LANE_THREADS_MAX = 16,
    COPIED_FORKS_MAX = 64,
    SESSION_FILES_MAX = 20000,
    ROUNDS = 6,
    TURN_MS = 40,
    QUICK_ROUNDS = 4,
    QUICK_TURN_MS = 20,
};

bool names_have(const char *names, const char *name)
{
    if (!names) return true;
    size_t length = strlen(name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

EntryKind kind_at(size_t number)
{
    size_t in_turn = number % 11;
    if (in_turn == 0) return ENTRY_USER;
    return in_turn % 2 ? ENTRY_ASSISTANT : ENTRY_TOOL;
}

void lane_append(Lane *lane, const Id *session, size_t number, size_t text_bytes, Id *out_last)
{
    Entry entry = {kind_at(number), text_of(text_bytes), text_bytes};
    lane->system->append(lane->client, session, &entry, out_last);
    lane->messages++;
}

bool can_append(const System *system)
{
    return system->append != NULL && system->durability != DURABILITY_NONE;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

void tree_remove(const char *path)
{
    (void)nftw(path, remove_one, DIRECTORIES_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}

static double disk_bytes; // of the walk that runs

static int add_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)path, (void)ftw;
    if (type == FTW_F) disk_bytes += (double)stat->st_blocks * 512;
    return 0;
}

static double directory_bytes(const char *path)
{
    disk_bytes = 0;
    (void)nftw(path, add_one, DIRECTORIES_OPEN_MAX, FTW_PHYS);
    return disk_bytes;
}

static double process_cpu_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

// All threads', the ended ones too.
static double server_cpu_ms(const Lane *lane)
{
    clockid_t clock;
    struct timespec time;
    if (lane->place.server.pid == 0) return 0;
    if (clock_getcpuclockid(lane->place.server.pid, &clock) != 0) return NAN;
    if (clock_gettime(clock, &time) != 0) return NAN;
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double server_written_bytes(const Lane *lane)
{
    return lane->place.server.pid ? process_written_bytes(lane->place.server.pid) : 0;
}

static void lane_fill(Lane *lane)
{
    const System *system = lane->system;
    if (system->fill_open) {
        lane->client = system->fill_open(&lane->place);
        lane->the_case->fill(lane);
        system->fill_close(lane->client);
        if (system->start) system->start(&lane->place);
    } else {
        if (system->start) system->start(&lane->place);
        lane->client = system->connect(&lane->place);
        lane->the_case->fill(lane);
        system->disconnect(lane->client);
    }
    lane->client = NULL;
}

static void lane_open(Run *run, const System *system, const Case *what, Lane *lane)
{
    *lane = (Lane){.system = system, .the_case = what};
    lane->place.forks_max = what->forks_max;
    snprintf(lane->place.directory, sizeof(lane->place.directory), "%s/%s", run->options.directory,
             system->name);
    require(mkdir(lane->place.directory, 0700) == 0, "cannot create %s", lane->place.directory);
    lane_fill(lane);
    if (what->processes > 0) {
        lane->clients = clients_start(lane, what->processes, what->call);
    } else if (what->beside) {
        lane->clients = clients_start(lane, 1, what->beside);
    }
    bool has_client = !what->has_no_client && what->processes == 0;
    if (has_client) lane->client = system->connect(&lane->place);
    if (what->prepare) what->prepare(lane);
}

static void lane_close(Lane *lane)
{
    if (lane->clients) clients_stop(lane->clients);
    if (lane->client) lane->system->disconnect(lane->client);
    if (lane->system->stop) lane->system->stop(&lane->place);
    tree_remove(lane->place.directory);
    samples_free(&lane->samples);
    samples_free(&lane->beside_samples);
    samples_free(&lane->rates);
}

static void add_rate(Lane *lane, double per_second)
{
    samples_add(&lane->rates, (int64_t)(per_second * 1000));
}

static void turn_of_processes(Lane *lane, int64_t ns, bool counts)
{
    ClientTurn turn;
    clients_turn_begin(lane->clients, ns);
    clients_turn_end(lane->clients, counts ? &lane->samples : NULL, &turn);
    if (!counts) return;
    lane->calls += turn.calls;
    lane->client_cpu_ms += turn.cpu_ms;
    lane->written_bytes += turn.written_bytes;
    lane->client_rss_kib = turn.rss_kib;
    add_rate(lane, turn.per_second);
}

static void call_lane(void *context)
{
    Lane *lane = context;
    lane->the_case->call(lane);
}

static void turn_of_threads(Lane *lane, int64_t ns, bool counts)
{
    Lane lanes[LANE_THREADS_MAX];
    LoadThread threads[LANE_THREADS_MAX];
    const System *system = lane->system;
    size_t count = lane->the_case->threads, before = lane->samples.count;
    require(count <= LANE_THREADS_MAX, "more than %d threads", LANE_THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        lanes[i] = *lane;
        lanes[i].index = i;
        if (i > 0 && !system->is_private) lanes[i].client = system->connect(&lane->place);
        threads[i] = (LoadThread){call_lane, &lanes[i]};
    }
    double cpu_ms = process_cpu_ms();
    Samples none = {.values = NULL};
    int64_t spent_ns =
        load_run(threads, count, lane->the_case->rate, ns, counts ? &lane->samples : &none);
    if (counts) {
        size_t calls = lane->samples.count - before;
        lane->calls += calls;
        lane->client_cpu_ms += process_cpu_ms() - cpu_ms;
        add_rate(lane, (double)calls * 1e9 / (double)spent_ns);
    }
    samples_free(&none);
    for (size_t i = 1; i < count && !system->is_private; i++)
        system->disconnect(lanes[i].client);
}

static void turn_alone(Lane *lane, int64_t ns, bool counts)
{
    const Case *what = lane->the_case;
    double cpu_ms = process_cpu_ms();
    int64_t begin = clock_monotonic_ns(), now = begin, spent = 0;
    size_t calls = 0;
    size_t calls_max = what->calls ? what->calls : TURN_CALLS_MAX;
    if (what->calls) ns = INT64_MAX;
    while (calls == 0 || (now - begin < ns && calls < calls_max)) {
        if (what->before) what->before(lane);
        int64_t t0 = clock_monotonic_ns();
        what->call(lane);
        now = clock_monotonic_ns();
        spent += now - t0;
        calls++;
        if (counts) samples_add(&lane->samples, now - t0);
    }
    if (!counts) return;
    lane->calls += calls;
    lane->client_cpu_ms += process_cpu_ms() - cpu_ms;
    add_rate(lane, (double)calls * 1e9 / (double)spent);
}

static void lane_turn(Lane *lane, int64_t ns, bool counts)
{
    const Case *what = lane->the_case;
    double cpu_ms = server_cpu_ms(lane);
    double by_server = server_written_bytes(lane), by_us = process_written_bytes(getpid());
    if (what->processes > 0) {
        turn_of_processes(lane, ns, counts);
    } else if (what->threads > 0) {
        turn_of_threads(lane, ns, counts);
    } else {
        if (what->beside) clients_turn_begin(lane->clients, ns);
        turn_alone(lane, ns, counts);
        ClientTurn beside;
        if (what->beside)
            clients_turn_end(lane->clients, counts ? &lane->beside_samples : NULL, &beside);
    }
    if (!counts) return;
    lane->server_cpu_ms += server_cpu_ms(lane) - cpu_ms;
    lane->written_bytes += server_written_bytes(lane) - by_server;
    lane->written_bytes += process_written_bytes(getpid()) - by_us;
}

// All lanes must have read the same.
static void require_equal_tallies(const Lane *lanes, size_t count)
{
    const Lane *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (lanes[i].tally.messages == 0) continue;
        if (!first) first = &lanes[i];
        require(lanes[i].tally.messages == first->tally.messages &&
                    lanes[i].tally.text_bytes == first->tally.text_bytes,
                "%s read %zu messages with %zu bytes, %s %zu with %zu", first->system->name,
                first->tally.messages, first->tally.text_bytes, lanes[i].system->name,
                lanes[i].tally.messages, lanes[i].tally.text_bytes);
    }
}

static double per_call(double ms, size_t calls)
{
    return calls ? ms * 1e3 / (double)calls : NAN;
}

static void lane_record(Run *run, Lane *lane)
{
    const Case *what = lane->the_case;
    Cell *cell = results_add(&run->results, run->workload->name, what->parameters, lane->system);
    cell->figures = figures_of(&lane->samples);
    cell->per_second = figures_of(&lane->rates).median_us;
    cell->client_cpu_us = per_call(lane->client_cpu_ms, lane->calls);
    // Who appends beside the calls would be counted as theirs.
    if (lane->calls > 0 && !what->beside)
        cell->written_bytes = lane->written_bytes / (double)lane->calls;
    bool has_server = lane->place.server.pid != 0;
    if (has_server) {
        ProcessMemory memory;
        process_memory(lane->place.server.pid, &memory);
        cell->server_cpu_us = per_call(lane->server_cpu_ms, lane->calls);
        cell->server_rss_kib = memory.rss_mib * 1024;
    }
    if (what->processes > 0) cell->client_rss_kib = lane->client_rss_kib;
    if (lane->filled > 0 && lane->system->durability != DURABILITY_NONE) {
        cell->disk_bytes_per_message = lane->disk_bytes / (double)lane->filled;
    }
    fprintf(stderr, "    %-20s %10.1f us\n", lane->system->name, cell->figures.median_us);
    if (!what->beside) return;
    Parameter parameters[PARAMETERS_MAX];
    memcpy(parameters, what->parameters, sizeof(parameters));
    for (size_t i = 0; i < PARAMETERS_MAX; i++) {
        if (parameters[i].name) continue;
        parameters[i] = (Parameter){"beside", 1};
        break;
    }
    cell = results_add(&run->results, run->workload->name, parameters, lane->system);
    cell->figures = figures_of(&lane->beside_samples);
}

// Why a system does not take part; NULL: it does.
static const char *reason_against(const System *system, const Case *what)
{
    if (!what->can(system)) return "it has no such call";
    if (what->is_reading && system->reads_as) return "it reads as another one does that is in it";
    if (system->is_files && what->sessions > SESSION_FILES_MAX)
        return "it would have to make too many files";
    bool is_many = what->processes > 1 || what->threads > 1 || what->beside;
    if (is_many && system->is_one_client) return "it serves one client at a time";
    if ((what->processes > 0 || what->beside) && system->is_private)
        return "it belongs to one process";
    if (system->copies_forks && what->forks_max > COPIED_FORKS_MAX)
        return "its forks are copies, which would fill the disk";
    return NULL;
}

static size_t open_lanes(Run *run, const Case *what, Lane *lanes)
{
    size_t count = 0;
    for (size_t i = 0; i < system_count(); i++) {
        const System *system = system_at(i);
        if (!names_have(run->options.systems, system->name)) continue;
        const char *reason = reason_against(system, what);
        if (!reason) {
            lane_open(run, system, what, &lanes[count++]);
            continue;
        }
        Cell *cell = results_add(&run->results, run->workload->name, what->parameters, system);
        snprintf(cell->skipped, sizeof(cell->skipped), "%s", reason);
    }
    return count;
}

void compare(Run *run, const Case *what)
{
    char name[CASE_BYTES_MAX], path[2 * CASE_BYTES_MAX];
    case_name(what->parameters, name, sizeof(name));
    snprintf(path, sizeof(path), "%s/%s", run->workload->name, name);
    if (run->options.only && !strstr(path, run->options.only)) return;
    int64_t begin_ns = clock_monotonic_ns();
    fprintf(stderr, "%s\n", path);
    Lane *lanes = calloc(SYSTEMS_MAX, sizeof(Lane));
    require(lanes != NULL, "out of memory");
    size_t count = open_lanes(run, what, lanes);
    sync(); // what filling has left to be written disturbs no turn
    for (size_t i = 0; i < count; i++) {
        lanes[i].disk_bytes = directory_bytes(lanes[i].place.directory);
        lanes[i].filled = lanes[i].messages;
    }
    size_t rounds = run->options.rounds;
    if (rounds == 0) rounds = run->options.is_quick ? QUICK_ROUNDS : ROUNDS;
    int64_t turn_ns = (run->options.is_quick ? QUICK_TURN_MS : TURN_MS) * INT64_C(1000000);
    if (what->processes > 0) {
        turn_ns *= 6; // who waits for a lock by polling ends late: not to count for much
    } else if (what->is_slow || what->rate > 0) {
        turn_ns *= 3;
    }
    for (size_t round = 0; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++)
            lane_turn(&lanes[(i + round) % count], turn_ns, /* counts= */ round > 0);
    }
    require_equal_tallies(lanes, count);
    for (size_t i = 0; i < count; i++) {
        lane_record(run, &lanes[i]);
        lane_close(&lanes[i]);
    }
    free(lanes);
    fprintf(stderr, "    (%.1f s)\n", (double)(clock_monotonic_ns() - begin_ns) / 1e9);
}
