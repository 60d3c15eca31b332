// Damage: what a store whose file was changed by the disk does to those who read it.
//
// A store is made through the public API, and read: that is the truth. Copies of it are damaged,
// each in one place, and met by `tine check`, `tine backup`, `tine restore-backup`, an embedded
// store and tined, each in a process of its own. The table says how that
// went:
//
//     copies    made           damaged   in a byte that anybody reads (used_bytes.h)
//     found     damaged, and check says so
//     missed    damaged, and check says nothing: never
//     crashed   check, backup or restore-backup ended by a signal: never
//     alarms    not damaged, and check says so: never
//     altered, misplaced, absent, refused, signals   of replies (truth.h): of an embedded store;
//               of a tined that has yet to walk the pages, so that it is called (called); and of
//               a direct reader where the last walk was before the damage (direct)
//
// No reply has an altered byte, and check misses nothing. A misplaced item is one that the history
// lost the marker or the rewind of, through a damaged branch page that no walk has met.

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copies.h"
#include "harness.h"
#include "os/random.h"
#include "plant.h"
#include "store_make.h"
#include "used_bytes.h"

enum { SHARE_DEFAULT = 100 };

typedef struct Sound { // the store before the damage
    uint8_t *bytes, *used;
    size_t size;
    Truth *truth;
} Sound;

typedef struct Reads {
    Difference difference;
    unsigned opened, signals, walked_signals; // of these: of files that check found sound
} Reads;

enum { READER_EMBEDDED, READER_CALLED, READER_DIRECT, READER_COUNT };

static const char *const READERS[READER_COUNT] = {"embedded", "called", "direct"};

typedef struct Tally {
    unsigned copies, damaged, found, missed, alarms, crashed;
    uint64_t direct_reads;
    Reads reads[READER_COUNT];
} Tally;

static void tally_reading(Reads *reads, const Reading *reading, bool is_walked)
{
    reads->opened += reading->is_open;
    reads->signals += reading->end.signal != 0;
    reads->walked_signals += reading->end.signal != 0 && is_walked;
    reads->difference.replies += reading->difference.replies;
    reads->difference.refused += reading->difference.refused;
    reads->difference.altered += reading->difference.altered;
    reads->difference.misplaced += reading->difference.misplaced;
    reads->difference.absent += reading->difference.absent;
}

static uint8_t *read_whole(const char *path, size_t *out_size)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    *out_size = (size_t)status.st_size;
    uint8_t *bytes = malloc(*out_size);
    CHECK_EQ(read(file, bytes, *out_size), (ssize_t)*out_size);
    close(file);
    return bytes;
}

static Sound sound_make(uint64_t seed)
{
    Sound sound = {.truth = NULL};
    char url[PLACE_BYTES_MAX + 16];
    Tine *tine;
    store_make(place("whole").text, seed);
    sound.bytes = read_whole(place("whole/data.mdb").text, &sound.size);
    sound.used = malloc(sound.size);
    used_bytes_find(sound.bytes, sound.size, sound.used);
    copy_write("read", sound.bytes, sound.size);
    snprintf(url, sizeof(url), "embedded:%s", place("read").text);
    CHECK_EQ(tine_open(url, NULL, &tine), 0);
    sound.truth = truth_read(tine);
    tine_close(tine);
    copy_write("walked", sound.bytes, sound.size);
    walk_by_tined("walked");
    return sound;
}

static void sound_free(Sound *sound)
{
    truth_free(sound->truth);
    free(sound->bytes);
    free(sound->used);
}

static ByteUse damage_of(const Sound *sound, const uint8_t *bytes, size_t size)
{
    ByteUse damage = BYTE_UNUSED;
    for (size_t i = 0; i < sound->size; i++) {
        bool is_changed = i >= size || bytes[i] != sound->bytes[i];
        if (is_changed && sound->used[i] > damage) damage = (ByteUse)sound->used[i];
    }
    return damage;
}

static const char *const CHECK_COPY[] = {"tine", "check", "copy", NULL};
static const char *const BACKUP_COPY[] = {"tine", "backup", "--data", "copy", "backup", NULL};
static const char *const RESTORE_COPY[] = {"tine",   "restore-backup", "copy",
                                           "--data", "restored",       NULL};

static const char *const DAMAGES[] = {
    [BYTE_UNUSED] = "not damaged",
    [BYTE_UNCLEAR] = "perhaps damaged",
    [BYTE_OF_ROW] = "a row is damaged",
    [BYTE_OF_PAGE] = "a page is damaged",
};

// Has every reader read the damaged bytes.
static void read_all_ways(const Sound *sound, const uint8_t *bytes, size_t size,
                          Reading out[READER_COUNT])
{
    End tined = {.code = 0};
    copy_write("copy", bytes, size);
    out[READER_EMBEDDED] = read_embedded("copy", sound->truth);
    copy_write("copy", bytes, size);
    out[READER_CALLED] = read_beside_tined("copy", sound->truth, &tined);
    if (tined.signal) out[READER_CALLED].end.signal = tined.signal;
    copy_write_over("walked", bytes, size);
    out[READER_DIRECT] = read_beside_tined("walked", sound->truth, &tined);
    if (tined.signal) out[READER_DIRECT].end.signal = tined.signal;
}

static void meet(const Sound *sound, const char *what, uint64_t seed, const uint8_t *bytes,
                 size_t size, Tally *tally)
{
    Reading readings[READER_COUNT];
    ByteUse damage = damage_of(sound, bytes, size);
    bool has_damage = damage > BYTE_UNCLEAR, is_told = false;
    copy_write("copy", bytes, size);
    End check = tine_run(CHECK_COPY), backup = tine_run(BACKUP_COPY);
    End restore = tine_run(RESTORE_COPY);
    tree_remove("backup");
    tree_remove("restored");
    bool is_clean = check.code == 0, is_crash = check.signal || backup.signal || restore.signal;
    read_all_ways(sound, bytes, size, readings);
    tally->copies++;
    tally->damaged += has_damage;
    tally->found += has_damage && !is_clean;
    tally->missed += has_damage && is_clean;
    tally->alarms += damage == BYTE_UNUSED && !is_clean;
    tally->crashed += is_crash;
    tally->direct_reads += readings[READER_DIRECT].direct_reads;
    for (int i = 0; i < READER_COUNT; i++) {
        tally_reading(&tally->reads[i], &readings[i], is_clean);
        is_told = is_told || readings[i].difference.altered || readings[i].difference.misplaced ||
                  (is_clean && readings[i].end.signal);
    }
    if (!is_told && !is_crash && has_damage != is_clean) return;
    printf("%s, seed %" PRIu64 ": %s; check %d/%d, backup %d/%d, restore-backup %d/%d", what, seed,
           DAMAGES[damage], check.code, check.signal, backup.code, backup.signal, restore.code,
           restore.signal);
    for (int i = 0; i < READER_COUNT; i++) {
        printf(", %s signal %d altered %" PRIu64 " misplaced %" PRIu64, READERS[i],
               readings[i].end.signal, readings[i].difference.altered,
               readings[i].difference.misplaced);
    }
    printf("\n");
}

static void print_tally(const char *what, const Tally *tally)
{
    printf("%s: copies %u, damaged %u, found %u, missed %u, alarms %u, crashed %u, direct reads "
           "%" PRIu64 "\n",
           what, tally->copies, tally->damaged, tally->found, tally->missed, tally->alarms,
           tally->crashed, tally->direct_reads);
    for (int i = 0; i < READER_COUNT; i++) {
        const Reads *reads = &tally->reads[i];
        printf("    %-8s  opened %4u, signals %3u (of sound files %u), replies %8" PRIu64
               ", refused %6" PRIu64 ", altered %5" PRIu64 ", misplaced %5" PRIu64
               ", absent %6" PRIu64 "\n",
               READERS[i], reads->opened, reads->signals, reads->walked_signals,
               reads->difference.replies, reads->difference.refused, reads->difference.altered,
               reads->difference.misplaced, reads->difference.absent);
    }
    fflush(stdout);
}

static void check_tally(const Tally *tally)
{
    CHECK_EQ(tally->crashed, 0);
    CHECK_EQ(tally->missed, 0);
    CHECK_EQ(tally->alarms, 0);
    for (int i = 0; i < READER_COUNT; i++) {
        CHECK_EQ(tally->reads[i].walked_signals, 0);
        CHECK_EQ(tally->reads[i].difference.altered, 0);
    }
}

// Each kind of damage in its share of the copies of a full run: TINE_DAMAGE_SHARE, 1 for all.
static unsigned share(void)
{
    const char *text = getenv("TINE_DAMAGE_SHARE");
    unsigned value = text ? (unsigned)strtoul(text, NULL, 10) : SHARE_DEFAULT;
    return value > 0 ? value : 1;
}

TEST(damaged_copies_of_a_store)
{
    static const struct {
        unsigned count;
        const char *name;
    } KINDS[PLANT_KIND_COUNT] = {
#define X(constant, count, name) [PLANT_##constant] = {count, name},
        PLANT_KINDS(X)
#undef X
    };
    uint64_t seed = test_seed();
    Sound sound = sound_make(seed);
    uint8_t *bytes = malloc(sound.size);
    printf("a store of %zu bytes, seed %" PRIu64 "\n", sound.size, seed);
    for (int kind = 0; kind < PLANT_KIND_COUNT; kind++) {
        Tally tally = {.copies = 0};
        unsigned count = (KINDS[kind].count + share() - 1) / share();
        for (unsigned i = 0; i < count; i++) {
            uint64_t own_seed = seed + (uint64_t)kind * 1000000 + i;
            memcpy(bytes, sound.bytes, sound.size);
            size_t size = plant((PlantKind)kind, own_seed, bytes, sound.size);
            meet(&sound, KINDS[kind].name, own_seed, bytes, size, &tally);
        }
        print_tally(KINDS[kind].name, &tally);
        check_tally(&tally);
    }
    free(bytes);
    sound_free(&sound);
}

TEST(an_undamaged_copy_is_read_as_it_is)
{
    Sound sound = sound_make(test_seed());
    Tally tally = {.copies = 0};
    meet(&sound, "nothing", 0, sound.bytes, sound.size, &tally);
    print_tally("nothing", &tally);
    CHECK(sound.size > 8 << 20 && sound.size < 11 << 20);
    CHECK_EQ(tally.damaged, 0);
    CHECK(tally.direct_reads > 1000);
    for (int i = 0; i < READER_COUNT; i++) {
        const Difference *difference = &tally.reads[i].difference;
        CHECK_EQ(tally.reads[i].opened, 1);
        CHECK(difference->replies > 1000);
        CHECK_EQ(difference->refused, 0);
        CHECK_EQ(difference->altered, 0);
        CHECK_EQ(difference->misplaced, 0);
        CHECK_EQ(difference->absent, 0);
    }
    check_tally(&tally);
    sound_free(&sound);
}
