// The files of a directory and of those below it, copied into memory and back.

#include "keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

enum { KEPT_FILES_MAX = 256, KEPT_PATH_BYTES = 4096 };

typedef struct KeptFile {
    char *path;
    uint8_t *bytes;
    size_t size;
} KeptFile;

struct Keep {
    KeptFile files[KEPT_FILES_MAX];
    size_t count;
};

static void keep_file(Keep *keep, const char *path, size_t size)
{
    CHECK(keep->count < KEPT_FILES_MAX);
    KeptFile *kept = &keep->files[keep->count++];
    *kept = (KeptFile){.path = strdup(path), .bytes = malloc(size + 1), .size = size};
    CHECK(kept->path != NULL && kept->bytes != NULL);
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(pread(file, kept->bytes, size, 0), (ssize_t)size);
    (void)syscall(SYS_close, file);
}

static void keep_directory(Keep *keep, const char *path)
{
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, "lock.mdb") == 0)
            continue;
        char below[KEPT_PATH_BYTES];
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        struct stat status;
        CHECK_EQ(lstat(below, &status), 0);
        if (S_ISDIR(status.st_mode)) {
            keep_directory(keep, below);
        } else {
            keep_file(keep, below, (size_t)status.st_size);
        }
    }
    closedir(directory);
}

Keep *keep_files(const char *root)
{
    Keep *keep = calloc(1, sizeof(Keep));
    CHECK(keep != NULL);
    keep_directory(keep, root);
    return keep;
}

void keep_restore(Keep *keep)
{
    for (size_t i = 0; i < keep->count; i++) {
        KeptFile *kept = &keep->files[i];
        int file = (int)syscall(SYS_openat, AT_FDCWD, kept->path, O_WRONLY | O_CLOEXEC);
        CHECK(file >= 0);
        CHECK_EQ(syscall(SYS_ftruncate, file, (long)kept->size), 0);
        CHECK_EQ(syscall(SYS_pwrite64, file, kept->bytes, kept->size, 0L), (ssize_t)kept->size);
        (void)syscall(SYS_close, file);
        free(kept->path);
        free(kept->bytes);
    }
    free(keep);
}
