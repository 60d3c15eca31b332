// What the benchmarks share: rows of a report, samples, and an engine in this process.
//
// Each row compares two ways of doing the same work in one run, interleaved, and reports medians
// and their ratio. Peers of the store are written against lmdb.h itself, on a copy of the very file
// that the engine uses, and move the same rows and bytes.

#pragma once

#include <lmdb.h>

#include "names.h"
#include "os/random.h"
#include "rpc/engine.h"
#include "wire/wire.h"

typedef struct Options {
    const char *directory; // where stores are made
    bool is_quick;         // smaller sizes: for a look, not for the record
    const char *only;      // rows whose name contains it; NULL: all
    const char *against;   // the path of another tined; NULL: none
} Options;

// Reads the arguments and makes the directory; ends the program if either fails.
//
//     [--quick] [--only NAME] [--directory DIR] [--against TINED]
//
// DIR must be on the disk that is to be measured; a subdirectory of it is made, and removed by
// options_end.
void options_begin(int argument_count, char **arguments, Options *out);
void options_end(const Options *options);

// One row of the report: `figure` must be at most (or at least) `target`.
void report_ratio_at_most(const char *name, double figure, double target, const char *format, ...)
    PRINTF_LIKE(4, 5);
void report_ratio_at_least(const char *name, double figure, double target, const char *format, ...)
    PRINTF_LIKE(4, 5);
// One without a target.
void report_figure(const char *name, double figure, const char *format, ...) PRINTF_LIKE(3, 4);
void report_note(const char *format, ...) PRINTF_LIKE(1, 2);
bool row_is_wanted(const Options *options, const char *name);

// Samples, in nanoseconds. All zeros is empty.
typedef struct Samples {
    int64_t *values;
    size_t count, capacity;
} Samples;

void samples_add(Samples *samples, int64_t ns);
double samples_median_us(Samples *samples); // sorts
double samples_quantile_us(Samples *samples, double quantile);
void samples_free(Samples *samples);

double median_of(double *values, size_t count); // sorts

// Ends the program with a message: a benchmark that cannot do its work has no figures.
void require(bool condition, const char *format, ...) PRINTF_LIKE(2, 3);

// A store in options->directory/name, made anew or kept.
typedef struct Bench {
    Engine *engine;
    char path[512];
    Rpc rpc; // of the benchmark's own thread
} Bench;

void bench_path(const Options *options, const char *name, char *out, size_t out_bytes_max);
void bench_remove(const char *path);
void bench_copy(const char *from, const char *to);
void bench_open(Bench *bench, const char *path, bool is_ephemeral);
void bench_open_with_seam(Bench *bench, const char *path, KvSeam seam); // durable
void bench_close(Bench *bench);

// An encoded Request, owned by the caller (buffer_free).
Buffer request_make(size_t method, const ProtobufCMessage *message);

// A copy of a request that carries an operation_id, as libtine's writes do; and another such id in
// its place.
Buffer request_with_operation_id(const Buffer *request);
void request_renew_operation_id(Buffer *request);

// Runs it and requires success; the reply's body lives until the bench's next call.
Slice bench_run(Bench *bench, const Buffer *request);

// Runs it `count` times, many in flight, with fresh operation_ids if it has one: fills stores.
void bench_run_many(Bench *bench, const Buffer *request, size_t count);

void bench_purge(Bench *bench, const char *session);
void bench_wait_for_purges(Bench *bench);

typedef struct IdText {
    char text[ULID_TEXT_BYTES + 1];
} IdText;

IdText bench_session(Bench *bench, const char *slug);
IdText bench_fork(Bench *bench, const char *session);
Buffer append_request(const char *session, size_t text_bytes);
IdText reply_id(Slice body); // the id of the record or the receipt in a reply
