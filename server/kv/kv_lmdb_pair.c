// lock.pair: one line, the device and inode of data.mdb and then of lock.mdb.

#include "kv/kv_lmdb_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
    if (code == 0 && unlink(path_of(directory, "lock.mdb").text) != 0) code = errno;
    if (code == 0 || code == ENOENT) return ERROR_NONE;
    return error_say(detail, ERROR_IO,
                     "cannot remove %s/lock.mdb, which is of another data.mdb: %s", directory,
                     strerror(code));
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
