// lock.pair: one line, the device and inode of data.mdb and then of lock.mdb. And lock.mdb's end.
//
// Whoever has the store open shares a lock of lock.mdb's first byte; whoever reads has a slot with
// the number of his transaction, which LMDB itself is asked for.

#include "kv/kv_lmdb_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"

enum { PAIR_BYTES_MAX = 128 };

typedef struct PairPath {
    char text[PATH_BYTES_MAX + 16];
} PairPath;

static PairPath path_of(const char *directory, const char *name)
{
    PairPath path;
    snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    return path;
}

static void pair_print(KvFileId data, KvFileId lock, char out[PAIR_BYTES_MAX])
{
    snprintf(out, PAIR_BYTES_MAX, "%" PRIu64 ":%" PRIu64 " %" PRIu64 ":%" PRIu64 "\n",
             (uint64_t)data.device, (uint64_t)data.inode, (uint64_t)lock.device,
             (uint64_t)lock.inode);
}

static void pair_read(const char *directory, char out[PAIR_BYTES_MAX])
{
    out[0] = '\0';
    int file = open(path_of(directory, "lock.pair").text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t size = read(file, out, PAIR_BYTES_MAX - 1);
    out[size > 0 ? size : 0] = '\0';
    close(file);
}

bool pair_is_lock_shared(const char *directory, int *out_code)
{
    int file = open(path_of(directory, "lock.mdb").text, O_RDONLY | O_CLOEXEC);
    *out_code = file < 0 && errno != ENOENT ? errno : 0;
    if (file < 0) return false;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(file, F_GETLK, &lock) != 0) *out_code = errno;
    close(file);
    return *out_code == 0 && lock.l_type != F_UNLCK;
}

// One line of LMDB's list, of a slot: pid, thread, and the transaction or "-".
static int note_reader(const char *line, void *context)
{
    long pid;
    uint64_t txn;
    if (sscanf(line, "%ld %*x %" SCNu64, &pid, &txn) == 2) *(long *)context = pid;
    return 0;
}

// The process of one who reads by lock.mdb, after a while; 0: nobody does. Returns LMDB's code.
static int await_readers(const char *directory, long *out_pid)
{
    MDB_env *env;
    int code = mdb_env_create(&env);
    if (code) return code;
    code = mdb_env_open(env, directory, MDB_RDONLY | MDB_NOTLS, 0600);
    for (int waited_ms = 0; code == 0; waited_ms++) {
        *out_pid = 0;
        code = mdb_reader_check(env, NULL); // the dead have theirs no more
        if (code == 0 && mdb_reader_list(env, note_reader, out_pid) < 0) code = EIO;
        if (code || *out_pid == 0 || waited_ms == READERS_WAIT_MS_MAX) break;
        (void)poll(NULL, 0, 1);
    }
    mdb_env_close(env);
    return code;
}

Error pair_remove_lock(const char *directory, ErrorDetail *detail)
{
    int code;
    long pid = 0;
    if (pair_is_lock_shared(directory, &code)) code = await_readers(directory, &pid);
    if (code == ENOENT) code = 0; // there is no data.mdb: what they read has gone elsewhere
    if (code == 0 && pid != 0) {
        return error_say(detail, ERROR_UNAVAILABLE,
                         "the process with pid %ld still reads %s as it was before; try again when "
                         "it has ended",
                         pid, directory);
    }
    if (code == 0 && unlink(path_of(directory, "lock.mdb").text) != 0) code = errno;
    if (code == 0 || code == ENOENT) return ERROR_NONE;
    return error_say(detail, kv_error_of(code), "cannot remove %s/lock.mdb: %s", directory,
                     mdb_strerror(code));
}

Error pair_prepare(const char *directory, ErrorDetail *detail)
{
    KvFileId data = {.inode = 0}, lock = {.inode = 0};
    int code = kv_identify_file(directory, "data.mdb", &data);
    if (code == 0) code = kv_identify_file(directory, "lock.mdb", &lock);
    if (code == 0 && lock.inode == 0) return ERROR_NONE;
    char noted[PAIR_BYTES_MAX], found[PAIR_BYTES_MAX];
    pair_read(directory, noted);
    pair_print(data, lock, found);
    if (code == 0 && strcmp(noted, found) == 0) return ERROR_NONE;
    if (code == 0) return pair_remove_lock(directory, detail);
    return error_say(detail, ERROR_IO, "cannot look at %s/lock.mdb: %s", directory, strerror(code));
}

void pair_note(const char *directory, KvFileId data, KvFileId lock)
{
    char noted[PAIR_BYTES_MAX], found[PAIR_BYTES_MAX];
    pair_read(directory, noted);
    pair_print(data, lock, found);
    if (strcmp(noted, found) == 0) return;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int file = open(path_of(directory, "lock.pair").text, flags, 0600);
    if (file < 0) return;
    ssize_t size = (ssize_t)strlen(found);
    if (write(file, found, (size_t)size) != size)
        (void)unlink(path_of(directory, "lock.pair").text);
    close(file);
}
