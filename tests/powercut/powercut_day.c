// The recorded day.

#include "powercut_day.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/random.h"
#include "report/log.h"
#include "store/backup.h"
#include "store/copy.h"
#include "store/partial.h"

static const char FIXTURE[] = SOURCE_DIR "/tests/store/fixtures/format-1.mdb.gz";
static const char BOOT_ID[] = "the day's", NEXT_BOOT_ID[] = "the next day's";
static const uint64_t SEQUENCE_UNKNOWN = UINT64_MAX;
static const uint64_t SEGMENT_BYTES[] = {0, 8 * 1024, 16 * 1024, 64 * 1024};

enum {
    SESSIONS_MAX = 8,
    FLUSH_MS = 2,
    RESTART_EVERY = 20,
    FLUSH_EVERY = 9,
    OVERTAKE_EVERY = 6,
    OVERTAKING_MAX = 8, // writes while one flush is under way
    KILL_EVERY = 8,
    KILLED_WRITES_MAX = 6, // pages that an append writes, about
};

typedef struct Work {
    Day *day;
    DayMode mode; // at the moment
    Engine *engine;
    Random random;
    char store[600];
    IdText sessions[SESSIONS_MAX];
    size_t session_count;
    const CrashRecord *last;
    size_t flushed_count; // writes that are on the disk by promise
    bool is_overtaking;   // a flush is under way, and must not be waited for
    bool is_compacted;
    size_t lives; // how often the store was opened
} Work;

static Engine *open_engine(StoreOptions store)
{
    PageWalkOptions walk = {.found = NULL}; // any finding makes the open fail
    store.walk = &walk;
    store.map_bytes = (size_t)1 << 30;
    EngineOptions options = {.store = store};
    ErrorDetail detail = {{0}};
    Engine *engine = NULL;
    Error error = engine_open(&options, &detail, &engine);
    if (error) fprintf(stderr, "%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    return engine;
}

Engine *day_engine(DayMode mode, const char *directory, const char *boot_id)
{
    return open_engine((StoreOptions){
        .directory = directory,
        .is_ephemeral = mode == DAY_UNSAFE,
        .flush_ms = mode == DAY_RELAXED ? FLUSH_MS : 0,
        .boot_id = boot_id,
    });
}

Engine *day_engine_unhurried(const char *directory, const char *boot_id)
{
    return open_engine(
        (StoreOptions){.directory = directory, .flush_ms = FLUSH_MS_MAX, .boot_id = boot_id});
}

static Engine *open_day(const Work *work)
{
    const Day *day = work->day;
    return open_engine((StoreOptions){
        .directory = work->store,
        .is_ephemeral = work->mode == DAY_UNSAFE,
        .flush_ms = work->mode == DAY_RELAXED ? FLUSH_MS : 0,
        .flush_data_ms = day->flush_data_ms,
        .log_segment_bytes = day->segment_bytes,
        .boot_id = day->boot_id,
    });
}

bool day_sequence(Engine *engine, uint64_t *out)
{
    Txn txn;
    StoreState state;
    Error error = txn_begin(engine_store(engine), /* is_write= */ false, NULL, NULL, &txn);
    if (error == ERROR_CLOSED) return false;
    CHECK_EQ(error, ERROR_NONE);
    CHECK_EQ(txn_state(&txn, &state), ERROR_NONE);
    txn_abort(&txn);
    *out = state.last_event_sequence;
    return true;
}

static uint64_t sequence_ok(Engine *engine)
{
    uint64_t sequence = SEQUENCE_UNKNOWN;
    CHECK(day_sequence(engine, &sequence));
    return sequence;
}

size_t day_held(const History *history, Engine *engine)
{
    uint64_t sequence;
    CHECK(day_sequence(engine, &sequence));
    for (size_t i = 0; i <= history->write_count; i++) {
        if (history->sequences[i] == sequence) return i;
    }
    CHECK_STR("the store is in no state of the day", NULL);
    return 0;
}

static void mark(Work *work, uint64_t bits)
{
    KvStats stats;
    size_t count = work->day->history.write_count;
    CHECK_EQ(store_stats(engine_store(work->engine), NULL, &stats), ERROR_NONE);
    record_mark(bits | (uint64_t)count << DAY_TXN_BITS | stats.last_txn);
    if (bits & DAY_FLUSHED) work->flushed_count = count;
}

// By the store's own call, or by the one that a client makes.
static Error flush(Work *work)
{
    if (random_below(&work->random, 2)) return store_flush(engine_store(work->engine), NULL);
    HealthRequest request = HEALTH_REQUEST__INIT;
    return engine_call_synced(work->engine, METHOD_HEALTH, &request);
}

// False: a flush has failed, and the store has closed itself.
static bool acknowledged(Work *work)
{
    History *history = &work->day->history;
    uint64_t *sequence = &history->sequences[history->write_count];
    *sequence = SEQUENCE_UNKNOWN;
    if (record_is_dead() || !day_sequence(work->engine, sequence)) return false;
    mark(work, work->mode == DAY_RELAXED ? 0 : DAY_FLUSHED);
    if (work->mode != DAY_RELAXED || work->is_overtaking ||
        random_below(&work->random, FLUSH_EVERY) != 0)
        return true;
    if (flush(work)) return false;
    mark(work, DAY_FLUSHED);
    return true;
}

static CrashOp choose(Work *work)
{
    bool has_room = work->session_count < SESSIONS_MAX;
    bool has_target =
        work->last && (work->last->op == CRASH_APPEND || work->last->op == CRASH_APPEND_LARGE);
    switch (random_below(&work->random, 24)) {
    case 0: return CRASH_APPEND_LARGE;
    case 1:
    case 2: return has_room ? CRASH_CREATE : CRASH_APPEND;
    case 3:
    case 4:
    case 5: return has_room ? CRASH_FORK : CRASH_APPEND;
    case 6:
    case 7: return CRASH_PROPAGATE;
    case 8: return CRASH_REMEMBER;
    case 9:
    case 10: return has_target ? CRASH_DELETE : CRASH_APPEND;
    case 11:
    case 12: return work->session_count > 3 ? CRASH_PURGE : CRASH_APPEND;
    default: return CRASH_APPEND;
    }
}

// Keeps the list of sessions that writes go to; the first one stays.
static void settle(Work *work, const CrashRecord *record)
{
    if (record->op == CRASH_CREATE || record->op == CRASH_FORK) {
        memcpy(work->sessions[work->session_count++], record->result, sizeof(IdText));
    }
    for (size_t i = 1; record->op == CRASH_PURGE && i < work->session_count; i++) {
        if (strcmp(work->sessions[i], record->session) != 0) continue;
        memcpy(work->sessions[i], work->sessions[--work->session_count], sizeof(IdText));
        return;
    }
}

// Of the history, only the first writes happened.
static void go_back(Work *work, size_t held)
{
    History *history = &work->day->history;
    history->write_count = held;
    work->session_count = 1;
    for (size_t i = 1; i < held; i++)
        settle(work, &history->writes[i]);
    work->last = held > 1 ? &history->writes[held - 1] : NULL;
}

// The same kernel opens the store that it had open: but for a write that nobody was answered, all
// is there. After a flush that failed it may be as it was at the last one, and of the other writes
// nothing is left; then the day goes on from there.
static void reopen(Work *work)
{
    Day *day = work->day;
    History *history = &day->history;
    if (day->mode == DAY_RELAXED)
        work->mode = random_below(&work->random, 4) ? DAY_RELAXED : DAY_SYNC;
    record_mark(DAY_OPENING);
    work->engine = open_day(work);
    work->lives++;
    uint64_t sequence = sequence_ok(work->engine);
    size_t held = history->write_count;
    bool is_unanswered = history->sequences[held] == SEQUENCE_UNKNOWN;
    if (is_unanswered && sequence > history->sequences[held - 1]) {
        history->sequences[held] = sequence; // the last one is there
    }
    while (held > 0 && history->sequences[held] != sequence)
        held--;
    CHECK(held >= work->flushed_count && held > 0);
    bool is_taken_back = held + (is_unanswered ? 1 : 0) < history->write_count;
    if (is_taken_back) {
        CHECK(day->has_failed_flush && day->mode == DAY_RELAXED && day->taken_back_at == 0);
        day->before = *history;
        day->taken_back_at = record_count();
    }
    if (held < history->write_count) go_back(work, held);
    mark(work, DAY_OPENED | DAY_FLUSHED); // what a process opens is on the disk from then on
}

static void close_store(Work *work)
{
    bool is_dead = record_is_dead();
    // None fails while it closes: there would be nobody to tell.
    bool is_whole = !record_fail_flush(0) && !is_dead;
    engine_close(work->engine);
    if (is_dead) record_revive();
    if (!is_whole) return;
    work->flushed_count = work->day->history.write_count;
    record_mark(DAY_FLUSHED | (uint64_t)work->flushed_count << DAY_TXN_BITS);
}

// The process has died, or a flush has failed.
static void recover(Work *work)
{
    CHECK(work->day->has_failed_flush || record_is_dead());
    record_release_flush();
    close_store(work);
    reopen(work);
}

// The write was refused: a flush has failed. If it was the flush of its record in the log, the
// write is there after all, and its operation ID says what its result is.
static void recover_refused(Work *work, CrashRecord *record)
{
    History *history = &work->day->history;
    size_t count = ++history->write_count;
    history->sequences[count] = SEQUENCE_UNKNOWN;
    recover(work);
    if (history->write_count < count) return;
    CHECK_EQ(crash_call(work->engine, record), ERROR_NONE);
    CHECK_EQ(sequence_ok(work->engine), history->sequences[count]);
    settle(work, record);
    work->last = record;
}

static void fill(Work *work, CrashRecord *record)
{
    size_t count = work->day->history.write_count;
    *record = (CrashRecord){.number = (uint32_t)count + 1};
    snprintf(record->operation_id, sizeof(record->operation_id), "day-%zu", count);
    record->op = choose(work);
    size_t session = random_below(&work->random, work->session_count);
    if (record->op == CRASH_PURGE && session == 0) session = work->session_count - 1;
    memcpy(record->session, work->sessions[session], sizeof(IdText));
    if (record->op == CRASH_DELETE) memcpy(record->target, work->last->result, sizeof(IdText));
}

static void write_one(Work *work)
{
    History *history = &work->day->history;
    CrashRecord *record = &history->writes[history->write_count];
    fill(work, record);
    // In the middle of a commit; of one, so that there is no third outcome.
    if (record->op == CRASH_APPEND && !work->is_overtaking &&
        random_below(&work->random, KILL_EVERY) == 0)
        record_kill_in(1 + random_below(&work->random, KILLED_WRITES_MAX));
    Error error = crash_call(work->engine, record);
    record_kill_in(0);
    if (error) {
        CHECK(error == ERROR_IO || error == ERROR_CLOSED);
        recover_refused(work, record);
        return;
    }
    settle(work, record);
    work->last = record;
    size_t count = ++history->write_count;
    if (acknowledged(work)) {
        CHECK(history->sequences[count] > history->sequences[count - 1]);
    } else {
        recover(work);
    }
}

// A log that is not relaxed is flushed by who writes.
static bool may_overtake_data(const Work *work)
{
    return work->mode != DAY_UNSAFE && work->day->flush_data_ms > 0;
}

// Writes while a flush is under way: of the log, or of data.mdb or flushed.mdb. Then the process
// dies, or the flush is waited for, or not.
static void overtake(Work *work)
{
    Store *store = engine_store(work->engine);
    History *history = &work->day->history;
    size_t life = work->lives;
    work->is_overtaking = true;
    bool is_of_log =
        !may_overtake_data(work) || (work->mode == DAY_RELAXED && random_below(&work->random, 2));
    if (is_of_log) {
        record_hold_log_flush();
    } else {
        record_hold_flush(1 + random_below(&work->random, 2));
    }
    write_one(work); // wakes who flushes
    while (work->lives == life && !record_has_held() && !store_is_failed(store))
        sched_yield();
    for (size_t i = random_below(&work->random, OVERTAKING_MAX); work->lives == life && i > 0;
         i--) {
        if (store_is_failed(store) || history->write_count >= DAY_WRITES_MAX) break;
        write_one(work);
    }
    unsigned end = (unsigned)random_below(&work->random, 3);
    if (work->lives == life && end == 0) record_kill();
    record_release_flush();
    work->is_overtaking = false;
    if (record_is_dead()) recover(work);
    KvFlushStats stats = {.commits = 1};
    while (work->lives == life && end == 1 && stats.commits > 0 && !store_is_failed(store)) {
        sched_yield();
        store_flush_stats(store, &stats);
    }
    if (stats.commits == 0 && work->lives == life) mark(work, DAY_FLUSHED);
}

// As `tine compact-db` does it.
static void compact(Work *work)
{
    StoreLock lock;
    StorePath partial;
    ErrorDetail detail = {{0}};
    CHECK_EQ(store_files_lock(work->store, "", &detail, &lock), 0);
    CHECK_EQ(partial_path(store_path(work->store, "compact").text, &detail, &partial), 0);
    StoreCopy copy = {.from = work->store, .to = partial.text, .is_compact = true};
    CHECK_EQ(store_copy(&copy, &detail), ERROR_NONE);
    CHECK_EQ(backup_replace(work->store, partial.text, NULL, &detail), 0);
    store_files_unlock(&lock);
}

static void place_fixture(const char *store)
{
    char command[2048];
    snprintf(command, sizeof(command), "mkdir '%s' && gzip -dc '%s' >'%s/data.mdb'", store, FIXTURE,
             store);
    CHECK_EQ(system(command), 0);
}

static void restart(Work *work, size_t compact_at)
{
    bool is_due = !work->is_compacted && work->day->history.write_count >= compact_at;
    if (!is_due && random_below(&work->random, 2)) record_kill();
    close_store(work);
    reopen(work);
    if (!is_due) return;
    close_store(work);
    compact(work);
    work->is_compacted = true;
    reopen(work);
}

static void begin_day(Work *work)
{
    Day *day = work->day;
    History *history = &day->history;
    work->engine = open_day(work);
    work->lives = 1;
    day->opened_at = record_count();
    if (day->held > 0) {
        size_t held = day_held(history, work->engine);
        CHECK(held >= day->held);
        day->held = held;
        memcpy(work->sessions[0], day->session, sizeof(IdText));
        go_back(work, held);
        mark(work, DAY_OPENED | DAY_FLUSHED);
        return;
    }
    history->sequences[0] = sequence_ok(work->engine);
    engine_new_session(work->engine, NULL, day->session);
    memcpy(work->sessions[work->session_count++], day->session, sizeof(IdText));
    history->write_count = 1; // writes[0] stands for it
    CHECK(acknowledged(work));
    if (day->mode == DAY_RELAXED)
        CHECK_EQ(store_flush(engine_store(work->engine), NULL), ERROR_NONE);
}

static void work_on(Work *work, size_t write_count)
{
    Day *day = work->day;
    History *history = &day->history;
    begin_day(work);
    bool may_fail = random_below(&work->random, 2) && !day->is_without_failures;
    size_t end = history->write_count + write_count;
    size_t compact_at = history->write_count + random_below(&work->random, write_count);
    size_t fail_at = history->write_count + random_below(&work->random, write_count);
    while (history->write_count < end) {
        bool is_compaction_due = !work->is_compacted && history->write_count >= compact_at;
        if (is_compaction_due || random_below(&work->random, RESTART_EVERY) == 0)
            restart(work, compact_at);
        if (may_fail && !day->has_failed_flush && history->write_count >= fail_at) {
            day->has_failed_flush = true;
            record_fail_flush(1 + random_below(&work->random, 4));
        }
        bool may_overtake = work->mode == DAY_RELAXED || may_overtake_data(work);
        if (may_overtake && random_below(&work->random, OVERTAKE_EVERY) == 0) overtake(work);
        write_one(work);
    }
    close_store(work);
}

static void record_day(Day *day, size_t write_count)
{
    CHECK(day->history.write_count + write_count <= DAY_WRITES_MAX);
    Work work = {.day = day, .mode = day->mode};
    random_seed(&work.random, day->seed);
    snprintf(work.store, sizeof(work.store), "%s/store", day->root);
    log_configure(LOG_OFF, STDERR_FILENO);
    record_begin(day->root);
    day->first_cut = record_count();
    work_on(&work, write_count);
    record_end(&day->recording);
    day_find_required(day);
}

static Day *day_new(DayMode mode, uint64_t seed, bool is_without_failures)
{
    Day *day = calloc(1, sizeof(Day));
    CHECK(day != NULL);
    day->mode = mode;
    day->seed = seed;
    day->boot_id = BOOT_ID;
    day->is_without_failures = is_without_failures || mode == DAY_UNSAFE;
    day->flush_data_ms = seed & 6 ? FLUSH_MS : 0;
    day->segment_bytes = SEGMENT_BYTES[seed >> 3 & 3];
    return day;
}

static Day *run(Day *day, size_t write_count)
{
    uint64_t seed = day->seed;
    day->has_fixture = seed & 1;
    snprintf(day->root, sizeof(day->root), "%s/day-%llx", test_dir(), (unsigned long long)seed);
    char store[600];
    snprintf(store, sizeof(store), "%s/store", day->root);
    CHECK_EQ(mkdir(day->root, 0700), 0);
    if (day->has_fixture) place_fixture(store);
    record_day(day, write_count);
    return day;
}

Day *day_run(DayMode mode, uint64_t seed, size_t write_count)
{
    return run(day_new(mode, seed, /* is_without_failures= */ false), write_count);
}

Day *day_run_as(const Day *options, size_t write_count)
{
    Day *day = day_new(options->mode, options->seed, options->is_without_failures);
    day->flush_data_ms = options->flush_data_ms;
    day->segment_bytes = options->segment_bytes;
    return run(day, write_count);
}

Day *day_run_after(const Day *day, size_t cut, const char *root, size_t write_count)
{
    if (day->required[cut] == 0) return NULL;
    Day *next = day_new(day->mode, day->seed + 2, day->is_without_failures);
    next->boot_id = NEXT_BOOT_ID;
    next->history = *day_history(day, cut);
    next->held = day->required[cut];
    memcpy(next->session, day->session, sizeof(IdText));
    snprintf(next->root, sizeof(next->root), "%s", root);
    record_day(next, write_count);
    return next;
}

void day_free(Day *day)
{
    record_free(&day->recording);
    free(day->required);
    free(day);
}

const History *day_history(const Day *day, size_t cut)
{
    return cut < day->taken_back_at ? &day->before : &day->history;
}
