// Reading lines through a window, and checking ahead whether they are JSON.

#include "importers/lines_ahead.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "os/random.h"
#include "text/json.h"

enum { FILE_BYTES = 3 * LINES_AHEAD_BYTES_MIN, LONG_LINE_BYTES = 2 * LINE_WINDOW_BYTES };

static void window_freep(LineWindow *window)
{
    line_window_free(window);
}

static void ahead_freep(LinesAhead **ahead)
{
    lines_ahead_stop(*ahead);
    free(*ahead);
}

static void closep(FILE **file)
{
    fclose(*file);
}

// Lines of all lengths; every `bad_every`-th is not JSON.
static FILE *file_with_lines(size_t bytes, size_t bad_every)
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    Random random;
    random_seed(&random, 5);
    size_t size = 0;
    for (size_t i = 0; size < bytes; i++) {
        size_t length = random_below(&random, 3) ? random_below(&random, 90) : 0;
        if (i == 1000) length = LONG_LINE_BYTES;
        const char *end = i % 7 == 0 ? " \r\n" : "\n";
        const char *begin = i % bad_every == bad_every - 1 ? "[1,\"" : "\"";
        if (i % 11 == 10) {
            size += (size_t)fprintf(file, "%s", end);
            continue;
        }
        size += (size_t)fprintf(file, "%s%0*zu\"%s", begin, (int)length, i, end);
    }
    CHECK_EQ(fflush(file), 0);
    return file;
}

TEST(lines_are_those_that_stdio_reads)
{
    CLEANUP(closep) FILE *file = file_with_lines(LINES_AHEAD_BYTES_MIN, 3);
    CHECK_EQ(fputs("the last one has no end", file) < 0, false);
    rewind(file);
    CLEANUP(window_freep) LineWindow window = {.file = fileno(file)};
    char *expected = NULL;
    size_t room = 0;
    ssize_t size;
    uint64_t offset = 0;
    Slice line;
    while ((size = getline(&expected, &room, file)) >= 0) {
        CHECK_EQ(line_window_line(&window, offset, &line), ERROR_NONE);
        CHECK_BYTES(line, slice(expected, (size_t)size));
        offset += line.size;
    }
    CHECK_EQ(line_window_line(&window, offset, &line), ERROR_NONE);
    CHECK_EQ(line.size, 0);
    free(expected);
}

TEST(line_window_has_less_than_was_asked_for_only_at_the_end)
{
    CLEANUP(closep) FILE *file = tmpfile();
    CHECK(file && fputs("abcdef", file) >= 0 && fflush(file) == 0);
    CLEANUP(window_freep) LineWindow window = {.file = fileno(file)};
    Slice bytes;
    CHECK_EQ(line_window_at(&window, 2, 3, &bytes), ERROR_NONE);
    CHECK_BYTES(bytes, slice_of("cdef"));
    CHECK_EQ(line_window_at(&window, 0, 6, &bytes), ERROR_NONE);
    CHECK_BYTES(bytes, slice_of("abcdef"));
    CHECK_EQ(line_window_at(&window, 4, 9, &bytes), ERROR_NONE);
    CHECK_BYTES(bytes, slice_of("ef"));
    CHECK_EQ(line_window_at(&window, 7, 1, &bytes), ERROR_NONE);
    CHECK_EQ(bytes.size, 0);
}

// Checks that the answer for each line is right, whether the thread or the reader has checked it.
static void check_answers(size_t bytes, size_t bad_every)
{
    CLEANUP(closep) FILE *file = file_with_lines(bytes, bad_every);
    CLEANUP(window_freep) LineWindow window = {.file = fileno(file)};
    CLEANUP(ahead_freep) LinesAhead *ahead = calloc(1, sizeof(*ahead));
    CHECK(ahead != NULL);
    lines_ahead_start(ahead, fileno(file));
    uint64_t offset = 0;
    size_t bad = 0;
    for (;;) {
        Slice line;
        CHECK_EQ(line_window_line(&window, offset, &line), ERROR_NONE);
        if (line.size == 0) break;
        Slice json = line_json(line, offset == 0);
        if (json.size > 0) {
            bool is_good = json_is_well_formed(json);
            CHECK_EQ(lines_ahead_is_json(ahead, offset, json), is_good);
            bad += !is_good;
        }
        offset += line.size;
    }
    CHECK(bad > 0);
}

TEST(lines_looked_at_ahead_are_judged_as_by_the_reader)
{
    check_answers(FILE_BYTES, 500);
}

TEST(more_bad_lines_than_are_remembered_are_judged_by_the_reader)
{
    check_answers(FILE_BYTES, 2);
}

TEST(lines_of_a_short_file_are_judged_by_the_reader)
{
    check_answers(LINES_AHEAD_BYTES_MIN / 4, 9);
}
