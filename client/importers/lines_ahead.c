// Checking lines ahead. The check is more than half of the work of reading a file; the rest needs
// the lines in order. So a thread checks the lines after the first quarter of the file while the
// reader reads the first quarter, and the reader overtakes it near the end. Neither waits for the
// other: the reader checks the lines that the thread has not checked.

#include "importers/lines_ahead.h"

#include <sys/stat.h>

#include "os/thread.h"
#include "text/json.h"

static void *ahead_main(void *context)
{
    LinesAhead *ahead = context;
    Slice line;
    uint64_t offset = ahead->begin;
    while (!atomic_load_explicit(&ahead->is_stopping, memory_order_relaxed)) {
        if (line_window_line(&ahead->window, offset, &line) || line.size == 0) break;
        Slice json = line_json(line, /* is_first= */ false);
        if (json.size > 0 && !json_is_well_formed(json)) {
            size_t count = atomic_load_explicit(&ahead->bad_count, memory_order_relaxed);
            if (count == LINES_AHEAD_BAD_MAX) break;
            ahead->bad[count] = offset;
            atomic_store_explicit(&ahead->bad_count, count + 1, memory_order_release);
        }
        offset += line.size;
        atomic_store_explicit(&ahead->done, offset, memory_order_release);
    }
    return NULL;
}

void lines_ahead_start(LinesAhead *ahead, int file)
{
    struct stat status;
    ahead->window.file = file;
    if (fstat(file, &status) || status.st_size < LINES_AHEAD_BYTES_MIN) return;
    uint64_t quarter = (uint64_t)status.st_size / 4;
    Slice line;
    if (line_window_line(&ahead->window, quarter, &line)) return;
    ahead->begin = quarter + line.size; // the reader checks the line that lies across the quarter
    atomic_init(&ahead->done, ahead->begin);
    ahead->is_started = !thread_start(&ahead->thread, ahead_main, ahead, "read ahead", NULL);
}

void lines_ahead_stop(LinesAhead *ahead)
{
    atomic_store_explicit(&ahead->is_stopping, true, memory_order_relaxed);
    if (ahead->is_started) pthread_join(ahead->thread, NULL);
    line_window_free(&ahead->window);
}

bool lines_ahead_is_json(LinesAhead *ahead, uint64_t offset, Slice json)
{
    bool is_known = ahead->is_started && offset >= ahead->begin &&
                    offset < atomic_load_explicit(&ahead->done, memory_order_acquire);
    if (!is_known) {
        // The reader has overtaken the thread: nothing is left for it.
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
