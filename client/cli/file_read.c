// Reads files and standard input whole.

#include "file_read.h"

#include <errno.h>
#include <string.h>

enum { READ_BYTES = 64 * 1024 };

static int read_all(FILE *file, const char *name, size_t bytes_max, Buffer *out)
{
    for (;;) {
        uint8_t *room;
        if (buffer_reserve(out, READ_BYTES, &room)) return cli_say(EXIT_FAILED, "out of memory");
        size_t size = fread(room, 1, READ_BYTES, file);
        buffer_grow(out, size);
        if (buffer_size(out) > bytes_max) {
            return cli_say(EXIT_FAILED, "%s is too long: more than %zu bytes", name, bytes_max);
        }
        if (ferror(file)) return cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
        if (size == 0) return EXIT_OK;
    }
}

int file_read(const char *path, size_t bytes_max, Buffer *out)
{
    if (strcmp(path, "-") == 0) return read_all(stdin, "standard input", bytes_max, out);
    FILE *file = fopen(path, "re");
    if (!file) return cli_say(EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    int code = read_all(file, path, bytes_max, out);
    fclose(file);
    return code;
}
