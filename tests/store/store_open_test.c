// Opening a store: who may, what is refused and why, and what stays over it.

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "store/open.h"
#include "store_fixture.h"

static StoreOptions options_for(const char *directory)
{
    return (
        StoreOptions){.directory = directory, .is_ephemeral = true, .map_bytes = (size_t)1 << 28};
}

static Store *open_ok(const char *directory)
{
    StoreOptions options = options_for(directory);
    ErrorDetail detail = {{0}};
    Store *store = NULL;
    Error error = store_open(&options, &detail, &store);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    return store;
}

// Opening must fail with this error, and say this.
static void open_fails(const char *directory, Error expected, const char *word)
{
    StoreOptions options = options_for(directory);
    ErrorDetail detail = {{0}};
    Store *store = NULL;
    Error error = store_open(&options, &detail, &store);
    printf("%s\n", detail.text);
    CHECK_EQ(error, expected);
    CHECK(store == NULL);
    CHECK(strstr(detail.text, word) != NULL);
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

// Puts (or with size 0 deletes) a row of meta, as damage or another version would leave it.
static void plant_meta(const char *name, const void *bytes, size_t size)
{
    Store *store = open_ok(test_dir());
    Txn txn;
    CHECK_EQ(txn_begin(store, /* is_write= */ true, NULL, NULL, &txn), ERROR_NONE);
    Key key = {.size = 0};
    key_add(&key, name, strlen(name));
    Error error = size > 0 ? txn_put(&txn, TABLE_META, &key, slice(bytes, size))
                           : txn_delete(&txn, TABLE_META, &key);
    CHECK_EQ(error, ERROR_NONE);
    CHECK_EQ(txn_commit(&txn), ERROR_NONE);
    store_close(store);
}

TEST(reopening_keeps_the_instance_id)
{
    Store *store = open_ok(test_dir());
    char instance_id[INSTANCE_ID_BYTES + 1];
    snprintf(instance_id, sizeof(instance_id), "%s", store_instance_id(store));
    Ulid id;
    CHECK(ulid_parse(slice_of(instance_id), &id));
    store_close(store);
    store = open_ok(test_dir());
    CHECK_STR(store_instance_id(store), instance_id);
    store_close(store);
}

TEST(second_open_in_this_process_is_refused)
{
    Store *store = open_ok(test_dir());
    char pid[32];
    snprintf(pid, sizeof(pid), "pid %ld;", (long)getpid());
    open_fails(test_dir(), ERROR_UNAVAILABLE, pid);
    store_close(store);
    store_close(open_ok(test_dir()));
}

// A process that has the store open until `release` is closed.
static pid_t hold_in_child(int *out_release)
{
    int ready[2], release[2];
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(release), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    char byte = 0;
    if (child == 0) {
        close(release[1]);
        Store *store = open_ok(test_dir());
        if (write(ready[1], &byte, 1) != 1) _exit(EXIT_FAILURE);
        if (read(release[0], &byte, 1) != 0) _exit(EXIT_FAILURE);
        store_close(store);
        _exit(EXIT_SUCCESS);
    }
    close(release[0]);
    close(ready[1]);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *out_release = release[1];
    return child;
}

TEST(open_while_another_process_has_it_is_refused_with_its_pid)
{
    int release;
    pid_t child = hold_in_child(&release);
    char pid[32];
    snprintf(pid, sizeof(pid), "pid %ld;", (long)child);
    open_fails(test_dir(), ERROR_UNAVAILABLE, pid);
    close(release);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    store_close(open_ok(test_dir()));
}

TEST(removing_the_lock_file_lets_nobody_in)
{
    int release;
    pid_t child = hold_in_child(&release);
    CHECK_EQ(unlink(path_of("tine.lock")), 0);
    char pid[32];
    snprintf(pid, sizeof(pid), "pid %ld;", (long)child);
    open_fails(test_dir(), ERROR_UNAVAILABLE, pid);
    CHECK_EQ(access(path_of("tine.lock"), F_OK), -1);
    close(release);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    store_close(open_ok(test_dir()));
}

TEST(lock_of_a_process_that_was_killed_is_free)
{
    int release;
    pid_t child = hold_in_child(&release);
    kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close(release);
    store_close(open_ok(test_dir()));
}

TEST(lock_file_is_private_and_names_its_holder)
{
    Store *store = open_ok(test_dir());
    struct stat status;
    CHECK_EQ(stat(path_of("tine.lock"), &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);
    char text[32] = {0}, pid[32];
    int file = open(path_of("tine.lock"), O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK(read(file, text, sizeof(text) - 1) > 0);
    close(file);
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    CHECK_STR(text, pid);
    store_close(store);
}

TEST(lock_file_that_is_a_directory_is_an_error)
{
    CHECK_EQ(mkdir(path_of("tine.lock"), 0700), 0);
    open_fails(test_dir(), ERROR_IO, "tine.lock");
}

TEST(lock_file_of_a_longer_pid_is_written_anew)
{
    int file = open(path_of("tine.lock"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQ(write(file, "1234567890123456789", 19), 19);
    close(file);
    Store *store = open_ok(test_dir());
    struct stat status;
    CHECK_EQ(stat(path_of("tine.lock"), &status), 0);
    CHECK(status.st_size < 10);
    store_close(store);
}

TEST(missing_directory_is_created_for_its_owner_alone)
{
    char directory[512];
    snprintf(directory, sizeof(directory), "%s", path_of("new"));
    Store *store = open_ok(directory);
    struct stat status;
    CHECK_EQ(stat(directory, &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0700);
    CHECK_EQ(stat(path_of("new/data.mdb"), &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);
    store_close(store);
}

TEST(directory_whose_parent_is_missing_is_an_error)
{
    open_fails(path_of("no/such"), ERROR_IO, "No such file");
}

TEST(regular_file_in_the_place_of_the_directory_is_an_error)
{
    int file = open(path_of("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
    open_fails(path_of("file"), ERROR_IO, "Not a directory");
}

TEST(unwritable_directory_is_an_error)
{
    enum { NOBODY = 65534 };
    CHECK_EQ(mkdir(path_of("readable"), 0555), 0);
    if (geteuid() == 0) {
        // Nothing is unwritable for root: let somebody else come this far.
        char *parent = strdup(test_dir());
        CHECK(parent != NULL);
        CHECK_EQ(chmod(test_dir(), 0711), 0);
        CHECK_EQ(chmod(dirname(parent), 0711), 0);
        free(parent);
        CHECK_EQ(seteuid(NOBODY), 0);
    }
    open_fails(path_of("readable"), ERROR_IO, "Permission denied");
    if (getuid() == 0) CHECK_EQ(seteuid(0), 0);
}

TEST(empty_and_endless_paths_are_refused)
{
    open_fails("", ERROR_INVALID_ARGUMENT, "1 to 4095 bytes");
    char *path = malloc(PATH_BYTES_MAX + 1);
    CHECK(path != NULL);
    memset(path, 'x', PATH_BYTES_MAX);
    path[PATH_BYTES_MAX] = '\0';
    open_fails(path, ERROR_INVALID_ARGUMENT, "1 to 4095 bytes");
    free(path);
}

TEST(store_of_a_newer_format_is_refused_and_stays_as_it_is)
{
    uint8_t newer[8], format[8];
    bytes_put_u64(newer, STORE_FORMAT_VERSION + 1);
    bytes_put_u64(format, STORE_FORMAT_VERSION);
    plant_meta("format", newer, sizeof(newer));
    open_fails(test_dir(), ERROR_INVALID_ARGUMENT, "storage format 4");
    open_fails(test_dir(), ERROR_INVALID_ARGUMENT, "this program reads format 3");
}

TEST(damaged_format_is_an_error)
{
    plant_meta("format", "1", 1);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.format");
}

TEST(format_of_zero_in_a_store_is_damage)
{
    static const uint8_t ZERO[8];
    plant_meta("format", ZERO, sizeof(ZERO));
    open_fails(test_dir(), ERROR_CORRUPT, "meta.format is 0");
}

TEST(store_without_a_format_is_not_a_new_one)
{
    plant_meta("format", NULL, 0);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.format is missing");
}

// The sign is in the file once, on a page of its own: "format" and the number.
static void change_sign(uint8_t bit)
{
    static const uint8_t SIGN[14] = {'f', 'o', 'r', 'm', 'a', 't', [13] = 3};
    static uint8_t bytes[1 << 20];
    store_close(open_ok(test_dir()));
    int file = open(path_of("data.mdb"), O_RDWR | O_CLOEXEC);
    ssize_t size = read(file, bytes, sizeof(bytes));
    CHECK(size > 0);
    int count = 0;
    for (uint8_t *at = bytes + 1; at + sizeof(SIGN) <= bytes + size; at++) {
        bool is_row = at[-1] == KV_TABLE_BYTE + 1; // of meta
        if (is_row || memcmp(at, SIGN, sizeof(SIGN)) != 0) continue;
        at[sizeof(SIGN) - 1] ^= bit;
        CHECK_EQ(pwrite(file, at, sizeof(SIGN), at - bytes), (ssize_t)sizeof(SIGN));
        count++;
    }
    CHECK_EQ(count, 1);
    CHECK_EQ(close(file), 0);
}

TEST(sign_that_differs_from_the_format_is_damage)
{
    for (uint8_t bit = 1; bit <= 4; bit = (uint8_t)(2 * bit)) { // 2, 1, 7
        change_sign(bit);
        open_fails(test_dir(), ERROR_CORRUPT, "meta.format differs from the file's sign");
        int file = open(path_of("data.mdb"), O_RDWR | O_CLOEXEC);
        CHECK(file >= 0 && ftruncate(file, 0) == 0);
        CHECK_EQ(close(file), 0);
        CHECK_EQ(unlink(path_of("lock.mdb")), 0);
    }
}

TEST(damaged_state_is_an_error)
{
    plant_meta("state", "short", 5);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.state");
}

TEST(missing_state_is_an_error)
{
    plant_meta("state", NULL, 0);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.state");
}

TEST(missing_or_damaged_instance_id_is_an_error)
{
    plant_meta("instance", "short", 5);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.instance");
}

TEST(file_that_is_no_store_is_an_error_and_stays_as_it_is)
{
    int file = open(path_of("data.mdb"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    static char text[8192] = "a letter, not a store";
    CHECK_EQ(write(file, text, sizeof(text)), sizeof(text));
    open_fails(test_dir(), ERROR_CORRUPT, "");
    char again[sizeof(text)];
    CHECK_EQ(pread(file, again, sizeof(again), 0), sizeof(again));
    CHECK(memcmp(text, again, sizeof(text)) == 0);
    close(file);
}

TEST(failed_open_leaves_the_store_free)
{
    plant_meta("instance", "short", 5);
    open_fails(test_dir(), ERROR_CORRUPT, "meta.instance");
    open_fails(test_dir(), ERROR_CORRUPT, "meta.instance"); // and not UNAVAILABLE
}

TEST(close_of_nothing_is_allowed)
{
    store_close(NULL);
}
