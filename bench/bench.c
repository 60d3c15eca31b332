// What the rows share.

#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fields.h"
#include "os/clock.h"
#include "wire/envelope.h"

enum { OPERATION_ID_BYTES = 32, NAME_COLUMNS = 58 };

static void usage(void)
{
    fprintf(stderr, "usage: %s [--quick] [--only NAME] [--directory DIR] [--against TINED]\n",
            program_invocation_short_name);
    exit(2);
}

void options_begin(int argument_count, char **arguments, Options *out)
{
    static char directory[256];
    const char *parent = ".";
    *out = (Options){.directory = directory};
    for (int i = 1; i < argument_count; i++) {
        bool has_value = i + 1 < argument_count;
        if (strcmp(arguments[i], "--quick") == 0) {
            out->is_quick = true;
        } else if (strcmp(arguments[i], "--only") == 0 && has_value) {
            out->only = arguments[++i];
        } else if (strcmp(arguments[i], "--directory") == 0 && has_value) {
            parent = arguments[++i];
        } else if (strcmp(arguments[i], "--against") == 0 && has_value) {
            out->against = arguments[++i];
        } else {
            usage();
        }
    }
    snprintf(directory, sizeof(directory), "%s/%s-%ld", parent, program_invocation_short_name,
             (long)getpid());
    require(mkdir(directory, 0700) == 0, "cannot create %s", directory);
    printf("%-*s %8s   %s\n", NAME_COLUMNS, "row", "figure", "target");
}

void options_end(const Options *options)
{
    rmdir(options->directory);
}

static void report(const char *name, double figure, double target, bool is_met,
                   const char *relation, const char *format, va_list arguments)
{
    char detail[256];
    vsnprintf(detail, sizeof(detail), format, arguments);
    printf("%-*s %8.2f   %s %-5.4g  %s  %s\n", NAME_COLUMNS, name, figure, relation, target,
           is_met ? "met   " : "MISSED", detail);
    fflush(stdout);
}

void report_ratio_at_most(const char *name, double figure, double target, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(name, figure, target, figure <= target, "<=", format, arguments);
    va_end(arguments);
}

void report_ratio_at_least(const char *name, double figure, double target, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(name, figure, target, figure >= target, ">=", format, arguments);
    va_end(arguments);
}

void report_figure(const char *name, double figure, const char *format, ...)
{
    char detail[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    printf("%-*s %8.2f   %16s  %s\n", NAME_COLUMNS, name, figure, "", detail);
    fflush(stdout);
}

void report_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("    ");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
}

bool row_is_wanted(const Options *options, const char *name)
{
    return !options->only || strstr(name, options->only);
}

void require(bool condition, const char *format, ...)
{
    if (condition) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

void samples_add(Samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? 2 * samples->capacity : 256;
        samples->values = realloc(samples->values, samples->capacity * sizeof(int64_t));
        require(samples->values != NULL, "out of memory");
    }
    samples->values[samples->count++] = ns;
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double samples_quantile_us(Samples *samples, double quantile)
{
    require(samples->count > 0, "no samples");
    qsort(samples->values, samples->count, sizeof(int64_t), compare_ns);
    size_t index = (size_t)((double)(samples->count - 1) * quantile);
    return (double)samples->values[index] / 1000.0;
}

double samples_median_us(Samples *samples)
{
    return samples_quantile_us(samples, 0.5);
}

void samples_free(Samples *samples)
{
    free(samples->values);
    *samples = (Samples){.values = NULL};
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(double), compare_doubles);
    return values[count / 2];
}

void bench_path(const Options *options, const char *name, char *out, size_t out_bytes_max)
{
    snprintf(out, out_bytes_max, "%s/%s", options->directory, name);
}

void bench_remove(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    rmdir(path);
}

void bench_copy(const char *from, const char *to)
{
    bench_remove(to);
    require(mkdir(to, 0700) == 0, "cannot create %s", to);
    char command[1200];
    snprintf(command, sizeof(command), "cp --sparse=never '%s/data.mdb' '%s/data.mdb' && sync '%s'",
             from, to, to);
    require(system(command) == 0, "cannot copy %s", from);
}

static void open_with(Bench *bench, const StoreOptions *store)
{
    snprintf(bench->path, sizeof(bench->path), "%s", store->directory);
    EngineOptions options = {.store = *store};
    ErrorDetail detail = {{0}};
    Error error = engine_open(&options, &detail, &bench->engine);
    require(!error, "cannot open %s: %s", store->directory, detail.text);
    rpc_init(&bench->rpc);
}

void bench_open(Bench *bench, const char *path, bool is_ephemeral)
{
    open_with(bench, &(StoreOptions){.directory = path, .is_ephemeral = is_ephemeral});
}

void bench_open_with_seam(Bench *bench, const char *path, KvSeam seam)
{
    open_with(bench, &(StoreOptions){.directory = path, .seam = seam});
}

void bench_close(Bench *bench)
{
    engine_close(bench->engine);
    rpc_free(&bench->rpc);
}

Buffer request_make(size_t method, const ProtobufCMessage *message)
{
    Buffer request = {.bytes = NULL};
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes;
    RequestEnvelope envelope = {.method = slice_of(METHODS[method].path)};
    Error error = buffer_reset(&request, 0);
    if (!error) error = envelope_request_write(&request, &envelope, size);
    if (!error) error = buffer_reserve(&request, size, &bytes);
    require(!error, "out of memory");
    protobuf_c_message_pack(message, bytes);
    buffer_grow(&request, size);
    return request;
}

static void operation_id_write(uint8_t *out)
{
    static _Thread_local Random random;
    static _Thread_local bool is_seeded;
    if (!is_seeded) random_seed_system(&random);
    is_seeded = true;
    char text[OPERATION_ID_BYTES + 1];
    for (size_t i = 0; i < OPERATION_ID_BYTES; i += 16)
        snprintf(text + i, 17, "%016llx", (unsigned long long)random_next(&random));
    memcpy(out, text, OPERATION_ID_BYTES);
}

Buffer request_with_operation_id(const Buffer *request)
{
    Buffer copy = {.bytes = NULL};
    uint8_t id[OPERATION_ID_BYTES];
    operation_id_write(id);
    RequestEnvelope envelope = {.operation_id = slice(id, sizeof(id))};
    Error error = buffer_reset(&copy, 0);
    if (!error) error = envelope_request_write(&copy, &envelope, 0);
    if (!error) error = buffer_append(&copy, buffer_slice(request));
    require(!error, "out of memory");
    return copy;
}

void request_renew_operation_id(Buffer *request)
{
    operation_id_write(request->bytes + request->start + 2);
}

static bool request_has_operation_id(const Buffer *request)
{
    return request->bytes[request->start] == (FIELD_REQUEST_OPERATION_ID << 3 | WIRE_BYTES);
}

Slice bench_run(Bench *bench, const Buffer *request)
{
    Rpc *rpc = &bench->rpc;
    rpc_reset(rpc);
    rpc->request = buffer_slice(request);
    engine_run(bench->engine, rpc);
    require(!rpc->error, "a call failed: %s %s", error_reason(rpc->error), rpc->detail.text);
    ResponseStatus status;
    Slice body;
    require(envelope_response_read(buffer_slice(&rpc->reply), &status, &body), "a malformed reply");
    return body;
}

enum { IN_FLIGHT = 256 };

typedef struct Flight {
    pthread_mutex_t mutex;
    pthread_cond_t landed;
    size_t in_flight;
} Flight;

static void flight_done(Rpc *rpc)
{
    Flight *flight = rpc->context;
    require(!rpc->error, "a call failed: %s %s", error_reason(rpc->error), rpc->detail.text);
    pthread_mutex_lock(&flight->mutex);
    if (--flight->in_flight == 0) pthread_cond_signal(&flight->landed);
    pthread_mutex_unlock(&flight->mutex);
}

void bench_run_many(Bench *bench, const Buffer *request, size_t count)
{
    Flight flight = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    Rpc *calls = calloc(IN_FLIGHT, sizeof(Rpc));
    Buffer *copies = calloc(IN_FLIGHT, sizeof(Buffer));
    require(calls != NULL && copies != NULL, "out of memory");
    bool has_id = request_has_operation_id(request);
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        rpc_init(&calls[i]);
        Error error = buffer_append(&copies[i], buffer_slice(request));
        require(!error, "out of memory");
    }
    while (count > 0) {
        size_t batch = count < IN_FLIGHT ? count : IN_FLIGHT;
        flight.in_flight = batch;
        for (size_t i = 0; i < batch; i++) {
            rpc_reset(&calls[i]);
            if (has_id) request_renew_operation_id(&copies[i]);
            calls[i].request = buffer_slice(&copies[i]);
            calls[i].on_done = flight_done;
            calls[i].context = &flight;
            engine_submit(bench->engine, &calls[i]);
        }
        pthread_mutex_lock(&flight.mutex);
        while (flight.in_flight > 0)
            pthread_cond_wait(&flight.landed, &flight.mutex);
        pthread_mutex_unlock(&flight.mutex);
        count -= batch;
    }
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        rpc_free(&calls[i]);
        buffer_free(&copies[i]);
    }
    free(calls);
    free(copies);
}

IdText reply_id(Slice body)
{
    IdText id = {{0}};
    WireField record, field;
    // A session and a receipt have the id in the same field, and replies have these in the same.
    require(wire_find(body, FIELD_GET_SESSION_RESPONSE_SESSION, &record) &&
                wire_find(record.bytes, FIELD_SESSION_ID, &field),
            "no id in a reply");
    memcpy(id.text, field.bytes.bytes, ULID_TEXT_BYTES);
    return id;
}

IdText bench_session(Bench *bench, const char *slug)
{
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = "/home/user/project";
    session.slug = (char *)(uintptr_t)slug;
    session.model = &model;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    Buffer bytes = request_make(METHOD_CREATE_SESSION, &request.base);
    IdText id = reply_id(bench_run(bench, &bytes));
    buffer_free(&bytes);
    return id;
}

void bench_purge(Bench *bench, const char *session)
{
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    Buffer bytes = request_make(METHOD_PURGE_SESSION, &request.base);
    (void)bench_run(bench, &bytes);
    buffer_free(&bytes);
}

static uint64_t purges_pending(Bench *bench)
{
    StatsRequest request = STATS_REQUEST__INIT;
    Buffer bytes = request_make(METHOD_STATS, &request.base);
    Slice body = bench_run(bench, &bytes);
    StatsResponse *stats = tine__v1__stats_response__unpack(NULL, body.size, body.bytes);
    require(stats != NULL, "Stats cannot be decoded");
    uint64_t pending = stats->purges_pending;
    tine__v1__stats_response__free_unpacked(stats, NULL);
    buffer_free(&bytes);
    return pending;
}

void bench_wait_for_purges(Bench *bench)
{
    while (purges_pending(bench) > 0) {
    }
}

IdText bench_fork(Bench *bench, const char *session)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request.at_head = true;
    Buffer bytes = request_make(METHOD_FORK_SESSION, &request.base);
    IdText id = reply_id(bench_run(bench, &bytes));
    buffer_free(&bytes);
    return id;
}

Buffer append_request(const char *session, size_t text_bytes)
{
    char *content = malloc(text_bytes + 1);
    require(content != NULL, "out of memory");
    for (size_t i = 0; i < text_bytes; i++)
        content[i] = (char)('a' + i % 26);
    content[text_bytes] = '\0';
    Text text = TEXT__INIT;
    text.text = content;
    Part part = PART__INIT;
    part.kind_case = PART__KIND_TEXT;
    part.text = &text;
    Part *parts[] = {&part};
    Usage usage = USAGE__INIT;
    usage.input_tokens = 900;
    usage.output_tokens = 100;
    usage.cost_nano_usd = 1000000;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_ASSISTANT;
    message.usage = &usage;
    message.parts = parts;
    message.n_parts = 1;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    Buffer bytes = request_make(METHOD_APPEND_MESSAGE, &request.base);
    free(content);
    return bytes;
}
