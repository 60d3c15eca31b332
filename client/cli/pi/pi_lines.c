// Lines. Whether they are JSON is more than half of the work of reading them; the rest needs their
// order. So a thread looks at those from a quarter of the file on while the reader has the first
// quarter, and is passed by him near the end. Nobody waits for anybody: what it has not looked at,
// the reader does himself.

#include "pi/pi_lines.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/thread.h"
#include "text/json.h"

void pi_window_free(PiWindow *window)
{
    buffer_free(&window->bytes);
}

// Fills the window with what the file has from `offset` on: `wanted` bytes, or fewer at its end.
static Error window_fill(PiWindow *window, uint64_t offset, size_t wanted)
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

static Slice window_from(const PiWindow *window, uint64_t offset)
{
    Slice bytes = buffer_slice(&window->bytes);
    bool is_inside = offset >= window->offset && offset - window->offset <= bytes.size;
    return is_inside ? slice_skip(bytes, (size_t)(offset - window->offset)) : slice(NULL, 0);
}

Error pi_window_at(PiWindow *window, uint64_t offset, size_t wanted, Slice *out)
{
    *out = window_from(window, offset);
    if (out->size >= wanted) return ERROR_NONE;
    Error error = window_fill(window, offset, wanted > PI_WINDOW_BYTES ? wanted : PI_WINDOW_BYTES);
    if (!error) *out = window_from(window, offset);
    return error;
}

Error pi_window_line(PiWindow *window, uint64_t offset, Slice *out)
{
    Slice rest = window_from(window, offset);
    for (size_t searched = 0;;) {
        const uint8_t *end =
            rest.size > searched ? memchr(rest.bytes + searched, '\n', rest.size - searched) : NULL;
        if (end) rest.size = (size_t)(end - rest.bytes) + 1;
        *out = rest;
        if (end) return ERROR_NONE;
        searched = rest.size;
        Error error = pi_window_at(window, offset, 2 * searched + PI_WINDOW_BYTES, &rest);
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

Slice pi_line_json(Slice line, bool is_first)
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

static void *ahead_main(void *context)
{
    PiAhead *ahead = context;
    Slice line;
    uint64_t offset = ahead->begin;
    while (!atomic_load_explicit(&ahead->is_stopping, memory_order_relaxed)) {
        if (pi_window_line(&ahead->window, offset, &line) || line.size == 0) break;
        Slice json = pi_line_json(line, /* is_first= */ false);
        if (json.size > 0 && !json_is_well_formed(json)) {
            size_t count = atomic_load_explicit(&ahead->bad_count, memory_order_relaxed);
            if (count == PI_AHEAD_BAD_MAX) break;
            ahead->bad[count] = offset;
            atomic_store_explicit(&ahead->bad_count, count + 1, memory_order_release);
        }
        offset += line.size;
        atomic_store_explicit(&ahead->done, offset, memory_order_release);
    }
    return NULL;
}

void pi_ahead_start(PiAhead *ahead, int file)
{
    struct stat status;
    ahead->window.file = file;
    if (fstat(file, &status) || status.st_size < PI_AHEAD_BYTES_MIN) return;
    uint64_t quarter = (uint64_t)status.st_size / 4;
    Slice line;
    if (pi_window_line(&ahead->window, quarter, &line)) return;
    ahead->begin = quarter + line.size; // the line that lies across the quarter is the reader's
    atomic_init(&ahead->done, ahead->begin);
    ahead->is_started = !thread_start(&ahead->thread, ahead_main, ahead);
}

void pi_ahead_stop(PiAhead *ahead)
{
    atomic_store_explicit(&ahead->is_stopping, true, memory_order_relaxed);
    if (ahead->is_started) pthread_join(ahead->thread, NULL);
    pi_window_free(&ahead->window);
}

bool pi_ahead_is_json(PiAhead *ahead, uint64_t offset, Slice json)
{
    bool is_known = ahead->is_started && offset >= ahead->begin &&
                    offset < atomic_load_explicit(&ahead->done, memory_order_acquire);
    if (!is_known) {
        // Once it is passed it has nothing left to do.
        if (ahead->is_started && offset >= ahead->begin) {
            atomic_store_explicit(&ahead->is_stopping, true, memory_order_relaxed);
        }
        return json_is_well_formed(json);
    }
    size_t count = atomic_load_explicit(&ahead->bad_count, memory_order_acquire);
    while (ahead->bad_passed < count && ahead->bad[ahead->bad_passed] < offset)
        ahead->bad_passed++;
    return ahead->bad_passed == count || ahead->bad[ahead->bad_passed] != offset;
}
