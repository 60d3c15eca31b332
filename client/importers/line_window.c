// Reading lines through a window.

#include "importers/line_window.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void line_window_free(LineWindow *window)
{
    buffer_free(&window->bytes);
}

// Reads `wanted` bytes from `offset` on into the window, or fewer at the file's end.
static Error window_fill(LineWindow *window, uint64_t offset, size_t wanted)
{
    uint8_t *room;
    Error error = buffer_reset(&window->bytes, 0);
    if (!error) error = buffer_reserve(&window->bytes, wanted, &room);
    if (error) return error;
    window->offset = offset;
    size_t got = 0;
    while (got < wanted) {
        ssize_t part = pread(window->file, room + got, wanted - got, (off_t)(offset + got));
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return ERROR_IO;
        if (part == 0) break;
        got += (size_t)part;
    }
    buffer_grow(&window->bytes, got);
    return ERROR_NONE;
}

static Slice window_from(const LineWindow *window, uint64_t offset)
{
    Slice bytes = buffer_slice(&window->bytes);
    bool is_inside = offset >= window->offset && offset - window->offset <= bytes.size;
    return is_inside ? slice_skip(bytes, (size_t)(offset - window->offset)) : slice(NULL, 0);
}

Error line_window_at(LineWindow *window, uint64_t offset, size_t wanted, Slice *out)
{
    *out = window_from(window, offset);
    if (out->size >= wanted) return ERROR_NONE;
    Error error =
        window_fill(window, offset, wanted > LINE_WINDOW_BYTES ? wanted : LINE_WINDOW_BYTES);
    if (!error) *out = window_from(window, offset);
    return error;
}

Error line_window_line(LineWindow *window, uint64_t offset, Slice *out)
{
    Slice rest = window_from(window, offset);
    for (size_t searched = 0;;) {
        const uint8_t *end =
            rest.size > searched ? memchr(rest.bytes + searched, '\n', rest.size - searched) : NULL;
        if (end) rest.size = (size_t)(end - rest.bytes) + 1;
        *out = rest;
        if (end) return ERROR_NONE;
        searched = rest.size;
        Error error = line_window_at(window, offset, 2 * searched + LINE_WINDOW_BYTES, &rest);
        if (error) return error;
        if (rest.size <= searched) {
            *out = rest;
            return ERROR_NONE;
        }
    }
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

Slice line_json(Slice line, bool is_first)
{
    static const uint8_t MARK[] = {0xef, 0xbb, 0xbf};
    while (line.size > 0 && is_space(line.bytes[line.size - 1]))
        line.size--;
    while (line.size > 0 && is_space(line.bytes[0]))
        line = slice_skip(line, 1);
    if (is_first && slice_starts_with(line, slice(MARK, sizeof(MARK)))) line = slice_skip(line, 3);
    while (line.size > 0 && is_space(line.bytes[0]))
        line = slice_skip(line, 1);
    return line;
}
