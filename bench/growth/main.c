// tine-growth: what an append and a page of a history cost as a store grows.
//
//     tine-growth [--largest MESSAGES] [--directory DIR]
//
// Three stores, of 1 000, 100 000 and MESSAGES (10 000 000) messages of 300 bytes: half of them in
// one session, the others in sessions of 500. They are filled by exchanges without waiting for the
// disk, then opened durably, and the rows are measured in turns on all three. Each must be flat:
// the figures at 100 000 and at the largest at most 1.5 times that at 1 000. The appends are
// measured once more without flushes, and without a target: there one sees the depth of the trees,
// which a disk hides.

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aged.h"
#include "fields.h"
#include "os/clock.h"

enum {
    SIZES = 3,
    EXCHANGE_MESSAGES = 500,
    OTHER_MESSAGES = 500, // of each session but the long one
    OTHERS_MAX = 64,      // sessions that appends go to in turn
    PAGE_MESSAGES = 50,
    ROUNDS = 60,
    TURN_CALLS = 10,
};

static const double FLAT = 1.5;

typedef enum Row { ROW_LONGEST, ROW_ANY, ROW_NEWEST, ROW_MIDDLE, ROW_SESSION, ROWS } Row;

enum { APPEND_ROWS = ROW_ANY + 1 };

static const char *const UNFLUSHED_NAMES[APPEND_ROWS] = {
    "append to the longest session, not flushed",
    "append to another session, not flushed",
};

static const char *const ROW_NAMES[ROWS] = {
    "durable append to the longest session", "durable append to another session",
    "newest 50 of the longest session",      "50 from the middle of the longest session",
    "GetSession of the longest session",
};

typedef struct Store {
    size_t messages;
    char path[512];
    Bench bench;
    IdText longest, others[OTHERS_MAX];
    size_t other_count, next_other;
    double fill_seconds, file_mib;
    Buffer requests[ROWS]; // of ROW_ANY: unused
    Buffer any[OTHERS_MAX];
    Samples samples[ROWS];
} Store;

// What one AppendExchange appends, `count` times the same message.
static Buffer exchange_request(const char *session, size_t count)
{
    char content[APPEND_TEXT_BYTES + 1];
    memset(content, 'x', APPEND_TEXT_BYTES);
    content[APPEND_TEXT_BYTES] = '\0';
    Text text = TEXT__INIT;
    text.text = content;
    Part part = PART__INIT, *parts[] = {&part};
    part.kind_case = PART__KIND_TEXT;
    part.text = &text;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_ASSISTANT;
    message.parts = parts;
    message.n_parts = 1;
    NewMessage *messages[EXCHANGE_MESSAGES];
    for (size_t i = 0; i < count; i++)
        messages[i] = &message;
    AppendExchangeRequest request = APPEND_EXCHANGE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.messages = messages;
    request.n_messages = count;
    return request_make(METHOD_APPEND_EXCHANGE, &request.base);
}

static void fill_session(Bench *bench, const char *session, size_t count)
{
    while (count > 0) {
        size_t batch = count < EXCHANGE_MESSAGES ? count : EXCHANGE_MESSAGES;
        Buffer request = exchange_request(session, batch);
        (void)bench_run(bench, &request);
        buffer_free(&request);
        count -= batch;
    }
}

// The long session and the others grow side by side, as they do in use.
static void fill(Store *store)
{
    Bench bench;
    bench_open(&bench, store->path, /* is_ephemeral= */ true);
    int64_t t0 = clock_monotonic_ns();
    store->longest = bench_session(&bench, "longest");
    for (size_t done = 0; done < store->messages; done += 2 * OTHER_MESSAGES) {
        IdText other = bench_session(&bench, "other");
        store->others[store->other_count++ % OTHERS_MAX] = other;
        fill_session(&bench, store->longest.text, OTHER_MESSAGES);
        fill_session(&bench, other.text, OTHER_MESSAGES);
    }
    bench_close(&bench);
    sync();
    store->fill_seconds = (double)(clock_monotonic_ns() - t0) / 1e9;
    if (store->other_count > OTHERS_MAX) store->other_count = OTHERS_MAX;
    char file[600];
    struct stat status;
    snprintf(file, sizeof(file), "%s/data.mdb", store->path);
    require(stat(file, &status) == 0, "cannot stat %s", file);
    store->file_mib = (double)status.st_blocks * 512 / 1048576;
    printf("%9zu messages: filled in %.1f s (%.0f a second), a file of %.0f MiB, %.0f bytes each\n",
           store->messages, store->fill_seconds, (double)store->messages / store->fill_seconds,
           store->file_mib, store->file_mib * 1048576 / (double)store->messages);
    fflush(stdout);
}

static Buffer page_request(const char *session, const char *cursor)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.newest_first = true;
    request.limit = PAGE_MESSAGES;
    request.cursor = (char *)(uintptr_t)cursor;
    return request_make(METHOD_MESSAGES_FOR_SESSION, &request.base);
}

// A cursor half way through: page by page, as large as they come.
static void find_middle(Store *store)
{
    char cursor[512] = "";
    for (size_t left = store->messages / 4; left > 0;) {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = store->longest.text;
        request.newest_first = true;
        request.page_bytes = 8 << 20;
        request.limit = (uint32_t)(left < 10000 ? left : 10000);
        request.cursor = cursor;
        Buffer bytes = request_make(METHOD_MESSAGES_FOR_SESSION, &request.base);
        Slice reply = bench_run(&store->bench, &bytes);
        WireField field, next = {.bytes = {NULL, 0}};
        size_t count = 0;
        while (wire_next(&reply, &field)) {
            if (field.number == FIELD_MESSAGES_FOR_SESSION_RESPONSE_MESSAGES) count++;
            if (field.number == FIELD_MESSAGES_FOR_SESSION_RESPONSE_NEXT_CURSOR) next = field;
        }
        require(count > 0 && next.bytes.size > 0, "a history ended before its middle");
        snprintf(cursor, sizeof(cursor), "%.*s", (int)next.bytes.size,
                 (const char *)next.bytes.bytes);
        buffer_free(&bytes);
        left -= count < left ? count : left;
    }
    store->requests[ROW_MIDDLE] = page_request(store->longest.text, cursor);
}

static void open_store(Store *store)
{
    bench_open(&store->bench, store->path, /* is_ephemeral= */ false);
    GetSessionRequest get = GET_SESSION_REQUEST__INIT;
    get.session_id = store->longest.text;
    store->requests[ROW_SESSION] = request_make(METHOD_GET_SESSION, &get.base);
    store->requests[ROW_LONGEST] = append_request(store->longest.text, APPEND_TEXT_BYTES);
    store->requests[ROW_NEWEST] = page_request(store->longest.text, "");
    for (size_t i = 0; i < store->other_count; i++)
        store->any[i] = append_request(store->others[i].text, APPEND_TEXT_BYTES);
    find_middle(store);
}

static void turn(Store *store, Row row, bool counts)
{
    for (size_t i = 0; i < TURN_CALLS; i++) {
        const Buffer *request = &store->requests[row];
        if (row == ROW_ANY) request = &store->any[store->next_other++ % store->other_count];
        int64_t t0 = clock_monotonic_ns();
        (void)bench_run(&store->bench, request);
        if (counts) samples_add(&store->samples[row], clock_monotonic_ns() - t0);
    }
}

// The figure of the second and of the third store, each to the first one's.
static void report(Store *stores, const char *name, Row row, bool has_target)
{
    double us[SIZES], p99_us[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        us[i] = samples_median_us(&stores[i].samples[row]);
        p99_us[i] = samples_quantile_us(&stores[i].samples[row], 0.99);
        samples_free(&stores[i].samples[row]);
    }
    for (size_t i = 1; i < SIZES; i++) {
        char row_name[80], detail[120];
        snprintf(row_name, sizeof(row_name), "%s, %zu", name, stores[i].messages);
        snprintf(detail, sizeof(detail), "%.1f / %.1f us; p99 %.0f / %.0f", us[i], us[0], p99_us[i],
                 p99_us[0]);
        if (has_target) {
            report_ratio_at_most(row_name, us[i] / us[0], FLAT, "%s", detail);
        } else {
            report_figure(row_name, us[i] / us[0], "%s", detail);
        }
    }
}

static void measure(Store *stores, const char *const *names, size_t rows, bool has_target)
{
    for (size_t round = 0; round <= ROUNDS; round++) {
        for (Row row = 0; row < rows; row++) {
            for (size_t i = 0; i < SIZES; i++)
                turn(&stores[(i + round) % SIZES], row, /* counts= */ round > 0);
        }
    }
    for (Row row = 0; row < rows; row++)
        report(stores, names[row], row, has_target);
}

static void close_store(Store *store)
{
    bench_close(&store->bench);
    bench_remove(store->path);
    for (Row row = 0; row < ROWS; row++) {
        buffer_free(&store->requests[row]);
    }
    for (size_t i = 0; i < store->other_count; i++)
        buffer_free(&store->any[i]);
}

static size_t read_arguments(int count, char **arguments, const char **out_directory)
{
    size_t largest = 10000000;
    *out_directory = ".";
    for (int i = 1; i < count; i++) {
        bool has_value = i + 1 < count;
        if (strcmp(arguments[i], "--largest") == 0 && has_value) {
            largest = strtoull(arguments[++i], NULL, 10);
        } else if (strcmp(arguments[i], "--directory") == 0 && has_value) {
            *out_directory = arguments[++i];
        } else {
            fprintf(stderr, "usage: tine-growth [--largest MESSAGES] [--directory DIR]\n");
            exit(2);
        }
    }
    require(largest >= 100000, "the largest must have 100000 messages at least");
    return largest;
}

int main(int argc, char **argv)
{
    static Store stores[SIZES] = {{.messages = 1000}, {.messages = 100000}};
    const char *directory;
    stores[2].messages = read_arguments(argc, argv, &directory);
    for (size_t i = 0; i < SIZES; i++) {
        snprintf(stores[i].path, sizeof(stores[i].path), "%s/tine-growth-%ld-%zu", directory,
                 (long)getpid(), i);
        fill(&stores[i]);
        open_store(&stores[i]);
    }
    measure(stores, ROW_NAMES, ROWS, /* has_target= */ true);
    for (size_t i = 0; i < SIZES; i++) {
        bench_close(&stores[i].bench);
        bench_open(&stores[i].bench, stores[i].path, /* is_ephemeral= */ true);
    }
    measure(stores, UNFLUSHED_NAMES, APPEND_ROWS, /* has_target= */ false);
    for (size_t i = 0; i < SIZES; i++)
        close_store(&stores[i]);
    return 0;
}
