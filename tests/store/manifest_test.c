// The manifest of a backup: it finds any change of the files, and never tells of one that is none.

#include "store/manifest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "check_day.h"
#include "store/backup.h"
#include "store/files.h"
#include "store/open.h"

static const char *const FIRST = "# tine backup manifest ";
static const char *const LAST = "# XXH128 of the lines above = ";

typedef struct Bytes {
    char *bytes; // with a NUL behind them
    size_t size;
} Bytes;

static StorePath directory_of(const char *name)
{
    StorePath path;
    snprintf(path.text, sizeof(path.text), "%s/%s", test_dir(), name);
    return path;
}

static StorePath path_of(const char *name, const char *file)
{
    return store_path(directory_of(name).text, file);
}

static Bytes read_bytes(StorePath path)
{
    struct stat status;
    int file = open(path.text, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    Bytes all = {.bytes = calloc(1, (size_t)status.st_size + 1), .size = (size_t)status.st_size};
    CHECK_EQ(read(file, all.bytes, all.size), (ssize_t)all.size);
    close(file);
    return all;
}

static void write_bytes(StorePath path, const char *bytes, size_t size)
{
    int file = open(path.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, bytes, size), (ssize_t)size);
    CHECK_EQ(close(file), 0);
}

static void flip(StorePath path, off_t offset)
{
    char byte;
    int file = open(path.text, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(pread(file, &byte, 1, offset), 1);
    byte ^= 0x10;
    CHECK_EQ(pwrite(file, &byte, 1, offset), 1);
    CHECK_EQ(close(file), 0);
}

static void make_backup(const char *from, const char *to, bool is_compact)
{
    StorePath target = directory_of(to);
    BackupOptions options = {
        .from = from, .to = target.text, .is_compact = is_compact, .instance_id = ""};
    ErrorDetail detail = {""};
    Verified verified;
    Error error = backup_make(&options, &detail, &verified);
    CHECK_STR(detail.text, "");
    CHECK_EQ(error, ERROR_NONE);
}

// A day's store in the test's directory, closed, and a backup of it.
static void make_day(const char *backup, bool is_compact)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
    run_purges(f);
    store_close(f->store);
    f->store = NULL;
    make_backup(test_dir(), backup, is_compact);
}

static void verify_ok(const char *name)
{
    ErrorDetail detail = {""};
    bool found;
    Error error = manifest_verify(directory_of(name).text, &detail, &found);
    CHECK_STR(detail.text, "");
    CHECK_EQ(error, ERROR_NONE);
    CHECK(found);
}

static void verify_fails(const char *name, Error expected, const char *words)
{
    ErrorDetail detail = {""};
    bool found;
    CHECK_EQ(manifest_verify(directory_of(name).text, &detail, &found), expected);
    CHECK(found);
    if (!strstr(detail.text, words)) CHECK_STR(detail.text, words);
}

// Checks as `tine check` does. Returns the number of damages.
static uint64_t damages(const char *name)
{
    StorePath path = directory_of(name);
    VerifyOptions options = {.directory = path.text};
    ErrorDetail detail = {""};
    Verification verification;
    Verified verified;
    CHECK_EQ(verify_begin(&options, &detail, &verification), ERROR_NONE);
    verify_end(&verification, &verified);
    return verified.result.damage_count + verified.page_damage_count + !verified.is_read;
}

TEST(a_manifest_says_what_is_in_the_backup)
{
    for (int is_compact = 0; is_compact < 2; is_compact++) {
        Day day;
        char text[128], hash[HASH_HEX_BYTES + 1];
        const char *name = is_compact ? "compact" : "plain";
        CLEANUP(store_fixture_close) StoreFixture *f = busy_day(&day);
        Txn *txn = step_begin(f);
        uint64_t sequence = txn->state.last_event_sequence;
        step_end(f);
        char instance[INSTANCE_ID_BYTES + 1];
        snprintf(instance, sizeof(instance), "%s", store_instance_id(f->store));
        store_close(f->store);
        f->store = NULL;
        make_backup(test_dir(), name, is_compact);
        verify_ok(name);

        Bytes manifest = read_bytes(path_of(name, STORE_FILE_MANIFEST));
        Bytes data = read_bytes(path_of(name, KV_FILE_DATA));
        printf("%s", manifest.bytes);
        CHECK(strncmp(manifest.bytes, FIRST, strlen(FIRST)) == 0);
        CHECK(strstr(manifest.bytes, "\n# hash XXH3-128") != NULL);
        CHECK(strstr(manifest.bytes, "\n# tine " TINE_VERSION "\n# storage_format 3\n") != NULL);
        snprintf(text, sizeof(text), "\n# instance %s\n# event_sequence %llu\n# log_position ",
                 instance, (unsigned long long)sequence);
        CHECK(strstr(manifest.bytes, text) != NULL);
        hash_format(hash_bytes(slice(data.bytes, data.size)), hash);
        snprintf(text, sizeof(text), "\n# bytes %zu data.mdb\nXXH128 (data.mdb) = %s\n%s",
                 data.size, hash, LAST);
        CHECK(strstr(manifest.bytes, text) != NULL);
        CHECK_EQ(damages(name), 0);
        free(manifest.bytes);
        free(data.bytes);
        store_files_remove(test_dir());
    }
}

TEST(a_flipped_byte_is_found_in_any_page_also_in_a_free_one)
{
    make_day("backup", /* is_compact= */ false);
    make_backup(directory_of("backup").text, "bare", /* is_compact= */ false);
    CHECK_EQ(unlink(path_of("bare", STORE_FILE_MANIFEST).text), 0);
    StorePath data = path_of("backup", KV_FILE_DATA), bare = path_of("bare", KV_FILE_DATA);
    off_t page_bytes = sysconf(_SC_PAGESIZE);
    off_t end = (off_t)store_files_bytes(directory_of("backup").text);
    unsigned unseen = 0;
    for (off_t page = 0; page < end; page += page_bytes) {
        off_t at = page + page_bytes - 1 - (page / page_bytes * 7) % page_bytes;
        flip(data, at);
        verify_fails("backup", ERROR_CORRUPT, "data.mdb was changed since the backup was made: ");
        if (unseen == 0) {
            flip(bare, at);
            unseen += damages("bare") == 0; // nobody uses the byte
            if (unseen > 0) CHECK_EQ(damages("backup"), 1);
            flip(bare, at);
        }
        flip(data, at);
    }
    CHECK(unseen > 0);
    verify_ok("backup");
    CHECK_EQ(damages("backup"), 0);
}

TEST(a_file_that_is_shorter_or_longer_or_missing_is_found)
{
    make_day("backup", /* is_compact= */ false);
    StorePath data = path_of("backup", KV_FILE_DATA);
    off_t bytes = (off_t)store_files_bytes(directory_of("backup").text);
    char words[64];
    snprintf(words, sizeof(words), "but the manifest says %lld", (long long)bytes);
    CHECK_EQ(truncate(data.text, bytes + 4096), 0);
    verify_fails("backup", ERROR_CORRUPT, words);
    CHECK(damages("backup") > 0);
    CHECK_EQ(truncate(data.text, bytes), 0);
    verify_ok("backup");
    CHECK_EQ(truncate(data.text, bytes - 1), 0);
    verify_fails("backup", ERROR_CORRUPT, words);
    CHECK_EQ(truncate(data.text, 0), 0);
    verify_fails("backup", ERROR_CORRUPT, "has 0 bytes");
    CHECK(damages("backup") > 0);
    CHECK_EQ(unlink(data.text), 0);
    verify_fails("backup", ERROR_CORRUPT, "data.mdb is missing");
    CHECK(damages("backup") > 0);
}

TEST(a_manifest_that_was_changed_or_cut_is_damaged)
{
    make_day("backup", /* is_compact= */ false);
    StorePath path = path_of("backup", STORE_FILE_MANIFEST);
    Bytes sound = read_bytes(path);
    for (size_t i = 0; i < sound.size; i++) {
        flip(path, (off_t)i);
        verify_fails("backup", ERROR_CORRUPT, "tine.manifest is damaged: ");
        write_bytes(path, sound.bytes, i);
        verify_fails("backup", ERROR_CORRUPT, "tine.manifest is damaged: ");
        write_bytes(path, sound.bytes, sound.size);
    }
    CHECK(damages("backup") == 0);
    write_bytes(path, sound.bytes, sound.size / 2);
    CHECK_EQ(damages("backup"), 1);
    write_bytes(path, "not a manifest\n", 15);
    verify_fails("backup", ERROR_CORRUPT, "its first line");
    free(sound.bytes);
}

// Writes a manifest of these lines, with the last line that fits.
static void write_lines(const char *lines)
{
    char text[1024], hash[HASH_HEX_BYTES + 1];
    hash_format(hash_bytes(slice_of(lines)), hash);
    int size = snprintf(text, sizeof(text), "%s%s%s\n", lines, LAST, hash);
    write_bytes(path_of("backup", STORE_FILE_MANIFEST), text, (size_t)size);
}

TEST(a_manifest_of_another_version_or_meaning_is_refused)
{
#define HASH_LINE "XXH128 (data.mdb) = 0123456789abcdef0123456789abcdef\n"
    make_day("backup", /* is_compact= */ false);
    write_lines("# tine backup manifest 2\n# bytes many\n");
    verify_fails("backup", ERROR_INVALID_ARGUMENT,
                 "has version 2, but this program reads version 1");
    CHECK_EQ(damages("backup"), 1);
    static const char *const REFUSED[] = {
        "# tine backup manifest 1\n",
        "# tine backup manifest 1\n" HASH_LINE,
        "# tine backup manifest 1\n# bytes data.mdb\n" HASH_LINE,
        "# tine backup manifest 1\n# bytes 1 data\n" HASH_LINE,
        "# tine backup manifest 1\n# bytes 1 data.mdb",
        "# tine backup manifest 1\n# bytes 1 data.mdb\nXXH128 (data.mdb) = 01234\n",
        "# tine backup manifest 1\n# bytes 1 ../x\nXXH128 (../x) = 0123456789abcdef012345678",
        "# tine backup manifest 1\n# bytes 1 \nXXH128 () = 0123456789abcdef0123456789abcdef\n",
    };
    for (size_t i = 0; i < sizeof(REFUSED) / sizeof(*REFUSED); i++) {
        write_lines(REFUSED[i]);
        verify_fails("backup", ERROR_CORRUPT, "tine.manifest is damaged: ");
    }
    write_lines("# tine backup manifest 1\n# new key\n# bytes 1 data.mdb\n" HASH_LINE);
    verify_fails("backup", ERROR_CORRUPT, "but the manifest says 1");
}

TEST(whoever_opens_a_backup_for_writing_removes_its_manifest)
{
    make_day("backup", /* is_compact= */ false);
    StorePath path = directory_of("backup");
    ErrorDetail detail = {""};
    StoreOptions options = {.directory = path.text, .is_read_only = true};
    Store *store;
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    store_close(store);
    verify_ok("backup");

    options.is_read_only = false;
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    CHECK(!manifest_exists(path.text));
    store_close(store);
    bool found;
    CHECK_EQ(manifest_verify(path.text, &detail, &found), ERROR_NONE);
    CHECK(!found);
    CHECK_EQ(damages("backup"), 0);
}

static Error restore(const char *backup, const char *to, ErrorDetail *detail)
{
    StorePath from = directory_of(backup), directory = directory_of(to);
    StorePath kept = store_path(directory.text, "kept");
    RestoreOptions options = {.backup = from.text, .directory = directory.text, .kept = kept.text};
    Verified verified;
    bool is_kept;
    return backup_restore(&options, detail, &verified, &is_kept);
}

TEST(a_backup_that_is_not_as_its_manifest_says_replaces_nothing)
{
    make_day("backup", /* is_compact= */ false);
    make_backup(directory_of("backup").text, "live", /* is_compact= */ false);
    ErrorDetail detail = {""};
    StorePath data = path_of("backup", KV_FILE_DATA);
    off_t last = (off_t)store_files_bytes(directory_of("backup").text) - 1;
    flip(data, last);
    CHECK_EQ(restore("backup", "live", &detail), ERROR_CORRUPT);
    CHECK(strstr(detail.text, "was changed since the backup was made") != NULL);
    verify_ok("live");
    CHECK(access(path_of("live", "kept").text, F_OK) != 0);

    StorePath source = directory_of("backup"), target = directory_of("other");
    BackupOptions options = {.from = source.text, .to = target.text, .instance_id = ""};
    Verified verified;
    CHECK_EQ(backup_make(&options, &detail, &verified), ERROR_CORRUPT);
    CHECK(access(target.text, F_OK) != 0);

    // The store that takes the place of a backup is not the one of its manifest.
    flip(data, last);
    CHECK_EQ(restore("backup", "live", &detail), ERROR_NONE);
    CHECK(!manifest_exists(directory_of("live").text));
    CHECK_EQ(damages("live"), 0);
    verify_ok("backup");
    CHECK_EQ(backup_compact(source.text, &(BackupHooks){.begin = NULL}, &detail, &verified),
             ERROR_NONE);
    CHECK_EQ(damages("backup"), 0);
}

TEST(a_backup_without_a_manifest_is_checked_and_restored)
{
    make_day("backup", /* is_compact= */ false);
    CHECK_EQ(unlink(path_of("backup", STORE_FILE_MANIFEST).text), 0);
    ErrorDetail detail = {""};
    CHECK_EQ(damages("backup"), 0);
    CHECK_EQ(restore("backup", "new", &detail), ERROR_NONE);
    CHECK_EQ(damages("new"), 0);
}
