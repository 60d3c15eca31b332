// lock.pair has one line: device and inode of data.mdb, then those of lock.mdb.
//
// A process that has the store open holds a shared lock on the first byte of lock.mdb. Each reader
// has a slot with the number of its transaction; LMDB is asked for those.

#include "kv/durable/lock_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/file_names.h"
#include "kv/durable/lmdb_error.h"

enum { PAIR_BYTES_MAX = 128 };

static void print_pair(FileId data, FileId lock, char out[PAIR_BYTES_MAX])
{
    snprintf(out, PAIR_BYTES_MAX, "%" PRIu64 ":%" PRIu64 " %" PRIu64 ":%" PRIu64 "\n",
             (uint64_t)data.device, (uint64_t)data.inode, (uint64_t)lock.device,
             (uint64_t)lock.inode);
}

static void read_pair(const char *directory, char out[PAIR_BYTES_MAX])
{
    out[0] = '\0';
    int file = file_at_open(directory, KV_FILE_PAIR, O_RDONLY);
    if (file < 0) return;
    ssize_t size = read(file, out, PAIR_BYTES_MAX - 1);
    out[size > 0 ? size : 0] = '\0';
    close(file);
}

bool lock_pair_is_shared(const char *directory, int *out_code)
{
    int file = file_at_open(directory, KV_FILE_LOCK, O_RDONLY);
    *out_code = file < 0 && errno != ENOENT ? errno : 0;
    if (file < 0) return false;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(file, F_GETLK, &lock) != 0) *out_code = errno;
    close(file);
    return *out_code == 0 && lock.l_type != F_UNLCK;
}

// Takes one line of LMDB's list of slots: pid, thread, and the transaction or "-".
static int note_reader(const char *line, void *context)
{
    long pid;
    uint64_t txn;
    if (sscanf(line, "%ld %*x %" SCNu64, &pid, &txn) == 2) *(long *)context = pid;
    return 0;
}

// Waits until nobody reads, READERS_WAIT_MS_MAX at most. Sets `*out_pid` to a process that still
// does, or to 0. Returns LMDB's code.
static int await_readers(const char *directory, long *out_pid)
{
    MDB_env *env;
    int code = mdb_env_create(&env);
    if (code) return code;
    code = mdb_env_open(env, directory, MDB_RDONLY | MDB_NOTLS, 0600);
    for (int waited_ms = 0; code == 0; waited_ms++) {
        *out_pid = 0;
        code = mdb_reader_check(env, NULL); // clears the slots of dead processes
        if (code == 0 && mdb_reader_list(env, note_reader, out_pid) < 0) code = EIO;
        if (code || *out_pid == 0 || waited_ms == READERS_WAIT_MS_MAX) break;
        (void)poll(NULL, 0, 1);
    }
    mdb_env_close(env);
    return code;
}

Error lock_pair_remove_lock(const char *directory, ErrorDetail *detail)
{
    int code;
    long pid = 0;
    if (lock_pair_is_shared(directory, &code)) code = await_readers(directory, &pid);
    if (code == ENOENT) code = 0; // no data.mdb: the file that they read was moved away
    if (code == 0 && pid != 0) {
        return error_say(detail, ERROR_UNAVAILABLE,
                         "the process with pid %ld still reads %s as it was before; try again when "
                         "it has ended",
                         pid, directory);
    }
    if (code == 0 && file_at_remove(directory, KV_FILE_LOCK) != 0) code = errno;
    if (code == 0 || code == ENOENT) return ERROR_NONE;
    return lmdb_fail(detail, code, "remove", directory, KV_FILE_LOCK);
}

Error lock_pair_prepare(const char *directory, ErrorDetail *detail)
{
    FileId data = {.inode = 0}, lock = {.inode = 0};
    int code = file_at_identify(directory, KV_FILE_DATA, &data);
    if (code == 0) code = file_at_identify(directory, KV_FILE_LOCK, &lock);
    if (code == 0 && lock.inode == 0) return ERROR_NONE;
    char noted[PAIR_BYTES_MAX], found[PAIR_BYTES_MAX];
    read_pair(directory, noted);
    print_pair(data, lock, found);
    if (code == 0 && strcmp(noted, found) == 0) return ERROR_NONE;
    if (code == 0) return lock_pair_remove_lock(directory, detail);
    return lmdb_fail(detail, code, "look at", directory, KV_FILE_LOCK);
}

void lock_pair_note(const char *directory, FileId data, FileId lock)
{
    char noted[PAIR_BYTES_MAX], found[PAIR_BYTES_MAX];
    read_pair(directory, noted);
    print_pair(data, lock, found);
    if (strcmp(noted, found) == 0) return;
    int file = file_at_open(directory, KV_FILE_PAIR, O_WRONLY | O_CREAT | O_TRUNC);
    if (file < 0) return;
    ssize_t size = (ssize_t)strlen(found);
    if (write(file, found, (size_t)size) != size) (void)file_at_remove(directory, KV_FILE_PAIR);
    close(file);
}
