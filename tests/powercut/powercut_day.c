// The recorded day.

#include "powercut_day.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "place.h"
#include "store/copy.h"

static const char FIXTURE[] = SOURCE_DIR "/tests/store/fixtures/format-1.mdb.gz";
static const char BOOT_ID[] = "the day's";
static const uint64_t SEQUENCE_UNKNOWN = UINT64_MAX;

enum { SESSIONS_MAX = 8, FLUSH_MS = 2, RESTART_EVERY = 40, FLUSH_EVERY = 9 };

typedef struct Work {
    Day *day;
    Engine *engine;
    Random random;
    char store[600];
    IdText sessions[SESSIONS_MAX];
    size_t session_count;
    const CrashRecord *last;
    size_t flushed_count; // writes that were flushed on demand
} Work;

Engine *day_engine(DayMode mode, const char *directory, const char *boot_id)
{
    EngineOptions options = {.store = {
                                 .directory = directory,
                                 .map_bytes = (size_t)1 << 30,
                                 .is_ephemeral = mode == DAY_UNSAFE,
                                 .flush_ms = mode == DAY_RELAXED ? FLUSH_MS : 0,
                                 .boot_id = boot_id,
                             }};
    ErrorDetail detail = {{0}};
    Engine *engine = NULL;
    Error error = engine_open(&options, &detail, &engine);
    if (error) fprintf(stderr, "%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    return engine;
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

// False: a flush has failed, and the store has closed itself.
static bool acknowledged(Work *work)
{
    History *history = &work->day->history;
    uint64_t *sequence = &history->sequences[history->write_count];
    *sequence = SEQUENCE_UNKNOWN;
    record_mark(history->write_count);
    if (!day_sequence(work->engine, sequence)) return false;
    if (work->day->mode != DAY_RELAXED || random_below(&work->random, FLUSH_EVERY) != 0)
        return true;
    if (store_flush(engine_store(work->engine))) return false;
    work->flushed_count = history->write_count;
    record_mark(history->write_count | DAY_FLUSHED);
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

// The same kernel opens the store that it had open. After a flush that failed it may be as it was
// at the last one, and of the other writes nothing is left; then the day goes on from there.
static void reopen(Work *work)
{
    Day *day = work->day;
    History *history = &day->history;
    record_fail_flush(0);
    work->engine = day_engine(day->mode, work->store, BOOT_ID);
    uint64_t sequence = sequence_ok(work->engine);
    size_t held = history->write_count;
    if (history->sequences[held] == SEQUENCE_UNKNOWN && sequence > history->sequences[held - 1]) {
        history->sequences[held] = sequence; // the last one is there
    }
    while (held > 0 && history->sequences[held] != sequence)
        held--;
    CHECK(held >= work->flushed_count && held > 0);
    if (held == history->write_count) return;
    CHECK(day->has_failed_flush && day->mode == DAY_RELAXED && day->taken_back_at == 0);
    day->before = *history;
    day->taken_back_at = record_count();
    history->write_count = held;
    work->session_count = 1;
    for (size_t i = 1; i < held; i++)
        settle(work, &history->writes[i]);
    work->last = held > 1 ? &history->writes[held - 1] : NULL;
}

static void recover(Work *work)
{
    CHECK(work->day->has_failed_flush);
    engine_close(work->engine);
    reopen(work);
}

static void write_one(Work *work)
{
    History *history = &work->day->history;
    CrashRecord *record = &history->writes[history->write_count];
    *record = (CrashRecord){.number = (uint32_t)history->write_count + 1};
    snprintf(record->operation_id, sizeof(record->operation_id), "day-%zu", history->write_count);
    record->op = choose(work);
    size_t session = random_below(&work->random, work->session_count);
    if (record->op == CRASH_PURGE && session == 0) session = work->session_count - 1;
    memcpy(record->session, work->sessions[session], sizeof(IdText));
    if (record->op == CRASH_DELETE) memcpy(record->target, work->last->result, sizeof(IdText));
    Error error = crash_call(work->engine, record);
    if (error) {
        CHECK(error == ERROR_IO || error == ERROR_CLOSED);
        recover(work);
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

// As `tine compact-db` does it.
static void compact(Work *work)
{
    Place place = {.lock = -1};
    char partial[PATH_MAX];
    ErrorDetail detail = {{0}};
    snprintf(place.directory, sizeof(place.directory), "%s", work->store);
    CHECK_EQ(place_lock(&place), 0);
    CHECK_EQ(place_partial(&place, "compact", partial), 0);
    StoreCopy copy = {.from = work->store, .to = partial, .is_compact = true};
    CHECK_EQ(store_copy(&copy, &detail), ERROR_NONE);
    CHECK_EQ(place_swap(&place, partial, NULL), 0);
    place_release(&place);
}

static void place_fixture(const char *store)
{
    char command[2048];
    snprintf(command, sizeof(command), "mkdir '%s' && gzip -dc '%s' >'%s/data.mdb'", store, FIXTURE,
             store);
    CHECK_EQ(system(command), 0);
}

static void work_on(Work *work, size_t write_count)
{
    Day *day = work->day;
    History *history = &day->history;
    work->engine = day_engine(day->mode, work->store, BOOT_ID);
    history->sequences[0] = sequence_ok(work->engine);
    engine_new_session(work->engine, NULL, day->session);
    memcpy(work->sessions[work->session_count++], day->session, sizeof(IdText));
    history->write_count = 1; // writes[0] stands for it
    CHECK(acknowledged(work));
    if (day->mode == DAY_RELAXED) CHECK_EQ(store_flush(engine_store(work->engine)), ERROR_NONE);
    bool may_fail = random_below(&work->random, 2) && day->mode != DAY_UNSAFE;
    size_t compact_at = 1 + random_below(&work->random, write_count);
    size_t fail_at = 1 + random_below(&work->random, write_count);
    while (history->write_count < write_count) {
        bool is_compacted = history->write_count == compact_at;
        if (is_compacted || random_below(&work->random, RESTART_EVERY) == 0) {
            engine_close(work->engine);
            record_fail_flush(0);
            if (is_compacted) compact(work);
            reopen(work);
        }
        if (may_fail && !day->has_failed_flush && history->write_count >= fail_at) {
            day->has_failed_flush = true;
            record_fail_flush(1 + random_below(&work->random, 4));
        }
        write_one(work);
    }
    engine_close(work->engine);
}

Day *day_run(DayMode mode, uint64_t seed, size_t write_count)
{
    CHECK(write_count <= DAY_WRITES_MAX);
    Day *day = calloc(1, sizeof(Day));
    CHECK(day != NULL);
    day->mode = mode;
    day->seed = seed;
    Work work = {.day = day};
    random_seed(&work.random, seed);
    day->has_fixture = random_below(&work.random, 2);
    snprintf(day->root, sizeof(day->root), "%s/day-%llx", test_dir(), (unsigned long long)seed);
    snprintf(work.store, sizeof(work.store), "%s/store", day->root);
    CHECK_EQ(mkdir(day->root, 0700), 0);
    if (day->has_fixture) place_fixture(work.store);
    log_configure(LOG_OFF, STDERR_FILENO);
    record_begin(day->root);
    work_on(&work, write_count);
    record_end(&day->recording);
    return day;
}

void day_free(Day *day)
{
    record_free(&day->recording);
    free(day);
}

const History *day_history(const Day *day, size_t cut)
{
    return cut < day->taken_back_at ? &day->before : &day->history;
}

size_t day_required(const Day *day, size_t cut)
{
    uint64_t required = 0;
    for (size_t i = 0; i < cut; i++) {
        const Record *record = &day->recording.records[i];
        if (record->kind != RECORD_MARK) continue;
        bool counts = day->mode != DAY_RELAXED || (record->number & DAY_FLUSHED);
        if (counts) required = record->number & ~DAY_FLUSHED;
    }
    return (size_t)required;
}
