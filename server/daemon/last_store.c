// The note is a file that contains the path of the store's directory. The directory of the socket
// is private to this user (directory_check_private), so nobody else can have written the note.

#include "daemon/last_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "store/files.h"

enum { NOTE_BYTES_MAX = PATH_BYTES_MAX + sizeof(".store"), NOTE_MODE = 0600 };

static void note_path(const char *socket, char *out)
{
    snprintf(out, NOTE_BYTES_MAX, "%s.store", socket);
}

// Reads the note; `out_data` is "" if there is none.
static void read_note(const char *socket, char out_data[PATH_BYTES_MAX])
{
    char path[NOTE_BYTES_MAX];
    note_path(socket, path);
    out_data[0] = '\0';
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return;
    ssize_t size = read(file, out_data, PATH_BYTES_MAX - 1);
    out_data[size > 0 ? size : 0] = '\0';
    close(file);
}

// Compares directories, not names: one directory is one store.
static bool is_same_directory(const struct stat *a, const char *path)
{
    struct stat b;
    return stat(path, &b) == 0 && a->st_ino == b.st_ino && a->st_dev == b.st_dev;
}

Error last_store_check(const char *socket, const char *data, ErrorDetail *detail)
{
    char last[PATH_BYTES_MAX];
    struct stat directory;
    read_note(socket, last);
    if (last[0] != '/' || stat(last, &directory) != 0 || !store_files_exist(last) ||
        is_same_directory(&directory, data)) {
        return ERROR_NONE;
    }
    return error_say(
        detail, ERROR_INVALID_ARGUMENT,
        "the last tined at %s kept %s, and was killed or failed; say --data %s to go on "
        "with that store, or --data %s for this one",
        socket, last, last, data);
}

void last_store_note(const char *socket, const char *data)
{
    char path[NOTE_BYTES_MAX];
    note_path(socket, path);
    (void)unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, NOTE_MODE);
    if (file < 0) return;
    if (write(file, data, strlen(data)) != (ssize_t)strlen(data)) (void)unlink(path);
    close(file);
}

void last_store_forget(const char *socket)
{
    char path[NOTE_BYTES_MAX];
    note_path(socket, path);
    (void)unlink(path);
}
