// Calls that change files and are not recorded: an image would lack what they do, so whoever makes
// one on a recorded file ends the process. What does not touch a recorded file is done.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record.h"

__attribute__((noreturn)) static void refuse(const char *name)
{
    fprintf(stderr, "%s of a recorded file is not recorded: teach tests/powercut/record.c\n", name);
    fflush(stderr);
    abort();
}

static void refuse_file(int file, const char *name)
{
    if (record_has_file(file)) refuse(name);
}

static void refuse_path(const char *path, const char *name)
{
    if (record_has_path(path)) refuse(name);
}

int openat(int directory, const char *path, int flags, ...)
{
    bool may_change = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    if (may_change) refuse_path(path, "openat");
    if (may_change) refuse_file(directory, "openat");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    refuse_path(path, "creat");
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    if (strpbrk(mode, "wa+")) refuse_path(path, "fopen");
    static FILE *(*_Atomic next)(const char *, const char *);
    if (!next) next = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return next(path, mode);
}

int truncate(const char *path, off_t size)
{
    refuse_path(path, "truncate");
    return (int)syscall(SYS_truncate, path, size);
}

// Blocks beyond the end hold nothing: an image need not have them.
int fallocate(int file, int mode, off_t offset, off_t size)
{
    if (mode != FALLOC_FL_KEEP_SIZE) refuse_file(file, "fallocate");
    return (int)syscall(SYS_fallocate, file, mode, offset, size);
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
    refuse_file(file, "pwritev2");
    return syscall(SYS_pwritev2, file, parts, count, offset, 0L, flags);
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    refuse_file(to, "copy_file_range");
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    refuse_file(to, "sendfile");
    return syscall(SYS_sendfile, to, from, at, size);
}

int dup(int file)
{
    refuse_file(file, "dup");
    return (int)syscall(SYS_dup, file);
}

int dup2(int from, int to)
{
    refuse_file(from, "dup2");
    refuse_file(to, "dup2");
    return (int)syscall(SYS_dup3, from, to, 0);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    refuse_path(from, "renameat");
    refuse_path(to, "renameat");
    refuse_file(to_directory, "renameat");
    return (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

int unlinkat(int directory, const char *path, int flags)
{
    if (directory == AT_FDCWD) refuse_path(path, "unlinkat");
    return record_remove_in(directory, path, flags);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    refuse_path(path, "mkdirat");
    refuse_file(directory, "mkdirat");
    return (int)syscall(SYS_mkdirat, directory, path, mode);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    refuse_path(to, "linkat");
    refuse_file(to_directory, "linkat");
    return (int)syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
}

int symlink(const char *to, const char *path)
{
    refuse_path(path, "symlink");
    return (int)syscall(SYS_symlinkat, to, AT_FDCWD, path);
}
