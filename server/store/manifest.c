// Manifests. The lines that begin with '#' are for tine, and comments for xxhsum, which checks the
// other lines. The last line has the hash of those before it.

#include "store/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "os/directory.h"
#include "store/files.h"
#include "store/meta.h"

enum {
    TEXT_BYTES_MAX = 16 * 1024,
    NAME_BYTES_MAX = 48,
    READ_BYTES = 1 << 16,
};

static const char FIRST[] = "# tine backup manifest ";
static const char BYTES[] = "# bytes ";
static const char HASH[] = "XXH128 (";
static const char LAST[] = "# XXH128 of the lines above = ";

typedef struct Text {
    char bytes[TEXT_BYTES_MAX + 1];
    size_t size;
} Text;

typedef struct FileSum { // what is, or must be, in a file
    uint64_t bytes;
    char hash[HASH_HEX_BYTES + 1];
} FileSum;

static Error fail(ErrorDetail *detail, const char *what, const char *path)
{
    return error_say_errno(detail, errno, "cannot %s %s", what, path);
}

// Reads up to `size` bytes, fewer only at the end of the file. Returns false and sets errno on
// failure.
static bool read_some(int file, void *bytes, size_t size, size_t *out_size)
{
    *out_size = 0;
    while (*out_size < size) {
        ssize_t got = read(file, (uint8_t *)bytes + *out_size, size - *out_size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break;
        *out_size += (size_t)got;
    }
    return true;
}

static bool sum_read(int file, HashStream *hash, uint8_t *buffer, FileSum *out)
{
    size_t size;
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    out->bytes = 0;
    do {
        if (!read_some(file, buffer, READ_BYTES, &size)) return false;
        hash_stream_add(hash, slice(buffer, size));
        out->bytes += size;
    } while (size == READ_BYTES);
    hash_format(hash_stream_result(hash), out->hash);
    return true;
}

// Reads a whole file.
static Error sum_file(int file, const char *path, ErrorDetail *detail, FileSum *out)
{
    HashStream *hash = hash_stream_open();
    uint8_t *buffer = malloc(READ_BYTES);
    Error error = hash && buffer
                      ? ERROR_NONE
                      : error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to read %s", path);
    if (!error && !sum_read(file, hash, buffer, out)) error = fail(detail, "read", path);
    free(buffer);
    hash_stream_close(hash);
    return error;
}

static void sum_text(const char *bytes, size_t size, char out[HASH_HEX_BYTES + 1])
{
    hash_format(hash_bytes(slice(bytes, size)), out);
}

static void add(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void add(Text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size =
        vsnprintf(text->bytes + text->size, sizeof(text->bytes) - text->size, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

static void add_store(Text *text, const Manifest *manifest)
{
    char when[32];
    struct tm parts;
    time_t seconds = (time_t)(manifest->time_ms / 1000);
    gmtime_r(&seconds, &parts);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &parts);
    add(text, "%s%d\n# hash XXH3-128, as xxhsum has it: xxhsum -c " STORE_FILE_MANIFEST "\n", FIRST,
        MANIFEST_VERSION);
    add(text, "# tine " TINE_VERSION "\n# storage_format %d\n# time %s\n", STORE_FORMAT_VERSION,
        when);
    if (!manifest->is_known) {
        add(text, "# damaged\n");
        return;
    }
    add(text, "# instance %s\n# event_sequence %" PRIu64 "\n# log_position %" PRIu64 "\n",
        manifest->instance_id, manifest->event_sequence, manifest->log_position);
}

static Error write_text(const char *directory, const Text *text, ErrorDetail *detail)
{
    StorePath path = store_path(directory, STORE_FILE_MANIFEST);
    int file = open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return fail(detail, "create", path.text);
    Error error = ERROR_NONE;
    ssize_t written = write(file, text->bytes, text->size);
    if (written >= 0 && (size_t)written < text->size) errno = ENOSPC;
    if (written != (ssize_t)text->size) error = fail(detail, "write", path.text);
    if (!error && fsync(file) != 0) error = fail(detail, "flush", path.text);
    if (close(file) != 0 && !error) error = fail(detail, "close", path.text);
    return error ? error : directory_flush(directory, detail);
}

Error manifest_write(const char *directory, const Manifest *manifest, ErrorDetail *detail)
{
    StorePath path = store_path(directory, KV_FILE_DATA);
    FileSum sum;
    Text text = {.size = 0};
    char hash[HASH_HEX_BYTES + 1];
    int file = open(path.text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail(detail, "open", path.text);
    Error error = sum_file(file, path.text, detail, &sum);
    close(file);
    if (error) return error;
    add_store(&text, manifest);
    add(&text, "%s%" PRIu64 " " KV_FILE_DATA "\n", BYTES, sum.bytes);
    add(&text, "%s" KV_FILE_DATA ") = %s\n", HASH, sum.hash);
    sum_text(text.bytes, text.size, hash);
    add(&text, "%s%s\n", LAST, hash);
    return write_text(directory, &text, detail);
}

// Compares a file with what the manifest says. `detail` says what differs.
static Error compare_file(const char *directory, const char *name, const FileSum *expected,
                          ErrorDetail *detail)
{
    StorePath path = store_path(directory, name);
    struct stat found;
    FileSum sum = {.bytes = 0};
    int file = open(path.text, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        return error_say(detail, ERROR_CORRUPT,
                         "%s is missing; the manifest says that it has %" PRIu64 " bytes",
                         path.text, expected->bytes);
    }
    if (file < 0) return fail(detail, "open", path.text);
    Error error = fstat(file, &found) != 0 ? fail(detail, "measure", path.text) : ERROR_NONE;
    if (!error && (uint64_t)found.st_size != expected->bytes) {
        error = error_say(detail, ERROR_CORRUPT,
                          "%s has %" PRIu64 " bytes, but the manifest says %" PRIu64, path.text,
                          (uint64_t)found.st_size, expected->bytes);
    }
    if (!error) error = sum_file(file, path.text, detail, &sum);
    close(file);
    if (error || strcmp(sum.hash, expected->hash) == 0) return error;
    return error_say(detail, ERROR_CORRUPT,
                     "%s was changed since the backup was made: its XXH3-128 hash is %s, but the "
                     "manifest says %s",
                     path.text, sum.hash, expected->hash);
}

static Error read_text(const char *directory, ErrorDetail *detail, bool *out_found, Text *out)
{
    StorePath path = store_path(directory, STORE_FILE_MANIFEST);
    int file = open(path.text, O_RDONLY | O_CLOEXEC);
    *out_found = file >= 0 || errno != ENOENT;
    if (!*out_found) return ERROR_NONE;
    if (file < 0) return fail(detail, "open", path.text);
    Error error = read_some(file, out->bytes, TEXT_BYTES_MAX, &out->size)
                      ? ERROR_NONE
                      : fail(detail, "read", path.text);
    out->bytes[out->size] = '\0';
    close(file);
    return error;
}

static Error refuse(const char *directory, const char *why, ErrorDetail *detail)
{
    return error_say(detail, ERROR_CORRUPT, "%s/" STORE_FILE_MANIFEST " is damaged: %s", directory,
                     why);
}

// Checks the first and the last line, which are the same in all versions, and cuts the last one
// off.
static Error check_frame(const char *directory, Text *text, ErrorDetail *detail)
{
    char hash[HASH_HEX_BYTES + 1], line[sizeof(LAST) + HASH_HEX_BYTES + 1];
    size_t line_size = sizeof(line) - 1;
    if (strncmp(text->bytes, FIRST, strlen(FIRST)) != 0) {
        return refuse(directory, "its first line is not that of a manifest", detail);
    }
    if (text->size <= line_size || strlen(text->bytes) != text->size) {
        return refuse(directory, "it is cut short, or is not text", detail);
    }
    text->size -= line_size;
    sum_text(text->bytes, text->size, hash);
    snprintf(line, sizeof(line), "%s%s\n", LAST, hash);
    if (strcmp(text->bytes + text->size, line) != 0) {
        return refuse(directory, "its last line is not the hash of the lines above", detail);
    }
    text->bytes[text->size] = '\0';
    long version = strtol(text->bytes + strlen(FIRST), NULL, 10);
    if (version == MANIFEST_VERSION) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT,
                     "%s/" STORE_FILE_MANIFEST
                     " has version %ld, but this program reads version %d; use a newer tine",
                     directory, version, MANIFEST_VERSION);
}

// Reads the two lines of a file: "# bytes SIZE NAME" and "XXH128 (NAME) = HASH". `*lines` is then
// behind them.
static bool parse_file(char **lines, char name[NAME_BYTES_MAX], FileSum *out)
{
    char *end;
    char *at = *lines + strlen(BYTES);
    out->bytes = strtoull(at, &end, 10);
    if (end == at || *end != ' ') return false;
    size_t name_size = strcspn(++end, "/\n");
    if (name_size == 0 || name_size >= NAME_BYTES_MAX || end[name_size] != '\n') return false;
    memcpy(name, end, name_size);
    name[name_size] = '\0';
    char before[sizeof(HASH) + NAME_BYTES_MAX + 8];
    int before_size = snprintf(before, sizeof(before), "%s%s) = ", HASH, name);
    at = end + name_size + 1;
    if (strncmp(at, before, (size_t)before_size) != 0) return false;
    at += before_size;
    if (strcspn(at, "\n") != HASH_HEX_BYTES) return false;
    memcpy(out->hash, at, HASH_HEX_BYTES);
    out->hash[HASH_HEX_BYTES] = '\0';
    *lines = at + HASH_HEX_BYTES + 1;
    return true;
}

static Error verify_files(const char *directory, Text *text, ErrorDetail *detail)
{
    char name[NAME_BYTES_MAX];
    FileSum expected;
    bool has_data = false;
    Error error = ERROR_NONE;
    for (char *at = text->bytes; !error && *at;) {
        if (strncmp(at, BYTES, strlen(BYTES)) == 0) {
            if (!parse_file(&at, name, &expected)) {
                return refuse(directory, "it does not say what a file must be", detail);
            }
            has_data = has_data || strcmp(name, KV_FILE_DATA) == 0;
            error = compare_file(directory, name, &expected, detail);
        } else if (*at == '#') {
            at += strcspn(at, "\n");
            at += *at == '\n';
        } else {
            return refuse(directory, "it has a line that is not of this version", detail);
        }
    }
    if (error || has_data) return error;
    return refuse(directory, "it does not name " KV_FILE_DATA, detail);
}

Error manifest_verify(const char *directory, ErrorDetail *detail, bool *out_found)
{
    Text text;
    Error error = read_text(directory, detail, out_found, &text);
    if (error || !*out_found) return error;
    error = check_frame(directory, &text, detail);
    if (!error) error = verify_files(directory, &text, detail);
    // A writer that opened the store meanwhile has removed the manifest before its first change.
    *out_found = manifest_exists(directory);
    return *out_found ? error : ERROR_NONE;
}

bool manifest_exists(const char *directory)
{
    if (strlen(directory) >= PATH_BYTES_MAX) return false;
    return access(store_path(directory, STORE_FILE_MANIFEST).text, F_OK) == 0;
}

Error manifest_remove(const char *directory, ErrorDetail *detail)
{
    StorePath path = store_path(directory, STORE_FILE_MANIFEST);
    if (unlink(path.text) == 0) return directory_flush(directory, detail);
    return errno == ENOENT ? ERROR_NONE : fail(detail, "remove", path.text);
}
