// The recorded day.

#include "powercut_day.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "place.h"
#include "store/copy.h"

static const char FIXTURE[] = SOURCE_DIR "/tests/store/fixtures/format-1.mdb.gz";
static const char BOOT_ID[] = "the day's";

enum { SESSIONS_MAX = 8, FLUSH_MS = 2, RESTART_EVERY = 40, FLUSH_EVERY = 9 };

typedef struct Work {
    Day *day;
    Engine *engine;
    Random random;
    char store[600];
    IdText sessions[SESSIONS_MAX];
    size_t session_count;
    const CrashRecord *last;
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

uint64_t day_sequence(Engine *engine)
{
    Txn txn;
    StoreState state;
    CHECK_EQ(txn_begin(engine_store(engine), /* is_write= */ false, NULL, NULL, &txn), ERROR_NONE);
    CHECK_EQ(txn_state(&txn, &state), ERROR_NONE);
    txn_abort(&txn);
    return state.last_event_sequence;
}

static void acknowledged(Work *work)
{
    Day *day = work->day;
    day->sequences[day->write_count] = day_sequence(work->engine);
    record_mark(day->write_count);
    if (day->mode != DAY_RELAXED || random_below(&work->random, FLUSH_EVERY) != 0) return;
    CHECK_EQ(store_flush(engine_store(work->engine)), ERROR_NONE);
    record_mark(day->write_count | DAY_FLUSHED);
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

static void write_one(Work *work)
{
    Day *day = work->day;
    CrashRecord *record = &day->writes[day->write_count];
    record->number = (uint32_t)day->write_count + 1;
    snprintf(record->operation_id, sizeof(record->operation_id), "day-%zu", day->write_count);
    record->op = choose(work);
    size_t session = random_below(&work->random, work->session_count);
    if (record->op == CRASH_PURGE && session == 0) session = work->session_count - 1;
    memcpy(record->session, work->sessions[session], sizeof(IdText));
    if (record->op == CRASH_DELETE) memcpy(record->target, work->last->result, sizeof(IdText));
    CHECK_EQ(crash_call(work->engine, record), ERROR_NONE);
    settle(work, record);
    work->last = record;
    day->write_count++;
    acknowledged(work);
    CHECK(day->sequences[day->write_count] > day->sequences[day->write_count - 1]);
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
    work->engine = day_engine(day->mode, work->store, BOOT_ID);
    day->sequences[0] = day_sequence(work->engine);
    engine_new_session(work->engine, NULL, day->session);
    memcpy(work->sessions[work->session_count++], day->session, sizeof(IdText));
    day->write_count = 1; // writes[0] stands for it
    acknowledged(work);
    size_t compact_at = 1 + random_below(&work->random, write_count);
    while (day->write_count < write_count) {
        bool is_compacted = day->write_count == compact_at;
        if (is_compacted || random_below(&work->random, RESTART_EVERY) == 0) {
            engine_close(work->engine);
            if (is_compacted) compact(work);
            work->engine = day_engine(day->mode, work->store, BOOT_ID);
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
