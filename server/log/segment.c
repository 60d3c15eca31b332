// The files of a log.

#include "log/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/directory.h"

enum { NAME_DIGITS = 16, ZEROS_BYTES = 64 * 1024 };
#define NAME_END ".log"

void segment_path(const char *directory, uint64_t number, char out[PATH_BYTES_MAX])
{
    snprintf(out, PATH_BYTES_MAX, "%s/%016" PRIx64 NAME_END, directory, number);
}

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "cannot %s %s", what, path);
}

static bool fill_with_zeros(int file, uint64_t bytes)
{
    static const uint8_t ZEROS[ZEROS_BYTES];
    int code = posix_fallocate(file, 0, (off_t)bytes);
    if (code) errno = code;
    for (uint64_t at = 0; !code && at < bytes; at += ZEROS_BYTES) {
        size_t size = bytes - at < ZEROS_BYTES ? (size_t)(bytes - at) : ZEROS_BYTES;
        ssize_t written = pwrite(file, ZEROS, size, (off_t)at);
        if (written == (ssize_t)size) continue;
        if (written >= 0) errno = ENOSPC;
        return false;
    }
    return !code && fsync(file) == 0;
}

Error segment_make(const char *directory, uint64_t number, uint64_t bytes, ErrorDetail *detail,
                   Segment *out)
{
    char path[PATH_BYTES_MAX];
    segment_path(directory, number, path);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return fail(detail, "make", path);
    Error error = fill_with_zeros(file, bytes) ? ERROR_NONE : fail(detail, "make room for", path);
    if (!error) error = directory_flush(directory, detail);
    *out = (Segment){.number = number, .file = file, .bytes = bytes};
    if (error) segment_remove(directory, out);
    return error;
}

Error segment_reuse(const char *directory, uint64_t number, ErrorDetail *detail, Segment *segment)
{
    char old[PATH_BYTES_MAX], new[PATH_BYTES_MAX];
    segment_path(directory, segment->number, old);
    segment_path(directory, number, new);
    if (rename(old, new) != 0) return fail(detail, "rename", old);
    segment->number = number;
    segment->used = segment->last_position = 0;
    segment->is_unflushed = false;
    return directory_flush(directory, detail);
}

void segment_remove(const char *directory, Segment *segment)
{
    char path[PATH_BYTES_MAX];
    segment_path(directory, segment->number, path);
    if (segment->file >= 0) close(segment->file);
    segment->file = -1;
    (void)unlink(path); // if it stays, the next start finds it again
}

// Returns false if the name is not a segment's.
static bool parse_name(const char *name, uint64_t *out_number)
{
    if (strlen(name) != NAME_DIGITS + strlen(NAME_END)) return false;
    if (strcmp(name + NAME_DIGITS, NAME_END) != 0) return false;
    if (strspn(name, "0123456789abcdef") != NAME_DIGITS) return false;
    *out_number = strtoull(name, NULL, 16);
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const Segment *)a)->number, y = ((const Segment *)b)->number;
    return (x > y) - (x < y);
}

static Error list_add(const char *directory, uint64_t number, ErrorDetail *detail,
                      Segment **segments, size_t *count)
{
    char path[PATH_BYTES_MAX];
    struct stat status;
    segment_path(directory, number, path);
    if (stat(path, &status) != 0) return errno == ENOENT ? ERROR_NONE : fail(detail, "read", path);
    Segment *more = realloc(*segments, (*count + 1) * sizeof(Segment));
    if (!more) return fail(detail, "list", directory);
    *segments = more;
    more[(*count)++] = (Segment){.number = number, .file = -1, .bytes = (uint64_t)status.st_size};
    return ERROR_NONE;
}

Error segment_list(const char *directory, ErrorDetail *detail, Segment **out_segments,
                   size_t *out_count)
{
    *out_segments = NULL;
    *out_count = 0;
    DIR *entries = opendir(directory);
    if (!entries && errno == ENOENT) return ERROR_NONE;
    if (!entries) return fail(detail, "read", directory);
    Error error = ERROR_NONE;
    const struct dirent *entry;
    errno = 0;
    while (!error && (entry = readdir(entries)) != NULL) {
        uint64_t number;
        if (parse_name(entry->d_name, &number)) {
            error = list_add(directory, number, detail, out_segments, out_count);
        }
        errno = 0;
    }
    if (!error && errno) error = fail(detail, "read", directory);
    closedir(entries);
    if (error) {
        free(*out_segments);
        *out_segments = NULL;
        *out_count = 0;
        return error;
    }
    if (*out_count > 1) qsort(*out_segments, *out_count, sizeof(Segment), compare_numbers);
    return ERROR_NONE;
}
