// A workload of one's own against tine, with nothing but libtine: copy this file and change what
// `prepare` and `once` do.
//
//     cc -O2 my_workload.c $(pkg-config --cflags --libs libtine) -o my_workload
//     ./my_workload ipc:///run/user/1000/tine/tine.sock [direct] [FORKS] [MESSAGES] [BYTES]
//
// It makes a chain of forks, reads the whole history at its end over and over, and prints a line of
// JSON with the latencies. `direct` reads in this process (TINE_DIRECT_READS). The sessions that it
// makes stay in the store, in the project directory "/bench/kit".

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tine_calls.h>

enum { WARM_UP_CALLS = 50, CALLS = 1000, PAGE_BYTES = 16 << 20, CURSOR_BYTES = 257 };

typedef struct Workload {
    Tine *tine;
    TineArena *arena; // responses are decoded into it and given back in one go
    TineStatus status;
    size_t forks, messages, bytes;
    char session[32]; // the end of the chain
} Workload;

static void check(const Workload *workload, int code, const char *what)
{
    if (!code) return;
    fprintf(stderr, "%s: %s %s\n", what, workload->status.reason, workload->status.message);
    exit(1);
}

static void create_session(Workload *workload)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "anthropic", model.name = "model-1";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = "/bench/kit", session.model = &model;
    Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    Tine__V1__CreateSessionResponse *response;
    TineCallOptions options = {.out_status = &workload->status};
    check(workload, tine_create_session(workload->tine, &options, &request, &response), "create");
    snprintf(workload->session, sizeof(workload->session), "%s", response->session->id);
    tine__v1__create_session_response__free_unpacked(response, NULL);
}

static void append(Workload *workload, const char *content)
{
    Tine__V1__Text text = TINE__V1__TEXT__INIT;
    text.text = (char *)(uintptr_t)content;
    Tine__V1__Part part = TINE__V1__PART__INIT, *parts[] = {&part};
    part.kind_case = TINE__V1__PART__KIND_TEXT, part.text = &text;
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    message.role = TINE__V1__ROLE__ROLE_USER, message.parts = parts, message.n_parts = 1;
    Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = workload->session, request.message = &message;
    Tine__V1__AppendMessageResponse *response;
    TineCallOptions options = {.out_status = &workload->status};
    check(workload, tine_append_message(workload->tine, &options, &request, &response), "append");
    tine__v1__append_message_response__free_unpacked(response, NULL);
}

static void fork_session(Workload *workload)
{
    Tine__V1__ForkSessionRequest request = TINE__V1__FORK_SESSION_REQUEST__INIT;
    request.session_id = workload->session;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD;
    request.at_head = 1;
    Tine__V1__ForkSessionResponse *response;
    TineCallOptions options = {.out_status = &workload->status};
    check(workload, tine_fork_session(workload->tine, &options, &request, &response), "fork");
    snprintf(workload->session, sizeof(workload->session), "%s", response->session->id);
    tine__v1__fork_session_response__free_unpacked(response, NULL);
}

// What is there before the clock runs.
static void prepare(Workload *workload)
{
    char *content = malloc(workload->bytes + 1);
    if (!content) exit(1);
    memset(content, 'x', workload->bytes);
    content[workload->bytes] = '\0';
    create_session(workload);
    for (size_t fork = 0;; fork++) {
        for (size_t i = 0; i < workload->messages; i++)
            append(workload, content);
        if (fork == workload->forks) break;
        fork_session(workload);
    }
    free(content);
}

// What is timed: the whole history, page by page. Returns how many messages it has.
static size_t once(Workload *workload)
{
    char cursor[CURSOR_BYTES] = "";
    size_t count = 0;
    do {
        Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = workload->session;
        request.page_bytes = PAGE_BYTES;
        request.cursor = cursor;
        Tine__V1__MessagesForSessionResponse *response;
        TineCallOptions options = {.out_status = &workload->status,
                                   .allocator = tine_arena_allocator(workload->arena)};
        check(workload, tine_messages_for_session(workload->tine, &options, &request, &response),
              "history");
        count += response->n_messages;
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        tine_arena_reset(workload->arena);
    } while (*cursor);
    return count;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(Workload *workload)
{
    static int64_t samples[CALLS];
    size_t expected = (workload->forks + 1) * workload->messages;
    for (size_t i = 0; i < WARM_UP_CALLS + CALLS; i++) {
        int64_t t0 = now_ns();
        size_t count = once(workload);
        int64_t t1 = now_ns();
        if (count != expected) { // a figure of half the work is none
            fprintf(stderr, "a history of %zu messages, not %zu\n", count, expected);
            exit(1);
        }
        if (i >= WARM_UP_CALLS) samples[i - WARM_UP_CALLS] = t1 - t0;
    }
    qsort(samples, CALLS, sizeof(samples[0]), compare);
    printf("{\"forks\": %zu, \"messages\": %zu, \"bytes\": %zu, \"count\": %d, "
           "\"median_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f}\n",
           workload->forks, workload->messages, workload->bytes, CALLS,
           (double)samples[CALLS / 2] / 1e3, (double)samples[CALLS * 99 / 100] / 1e3,
           (double)samples[CALLS * 999 / 1000] / 1e3);
}

int main(int argc, char **argv)
{
    int next = 1;
    const char *url = argc > next ? argv[next++] : "embedded::memory:";
    TineOpenOptions options = {.flags = 0};
    if (argc > next && strcmp(argv[next], "direct") == 0) {
        options.flags = TINE_DIRECT_READS;
        next++;
    }
    Workload workload = {.forks = argc > next ? strtoul(argv[next], NULL, 10) : 8,
                         .messages = argc > next + 1 ? strtoul(argv[next + 1], NULL, 10) : 25,
                         .bytes = argc > next + 2 ? strtoul(argv[next + 2], NULL, 10) : 1024,
                         .arena = tine_arena_open()};
    if (!workload.arena) return 1;
    check(&workload, tine_open_with(url, &options, &workload.status, &workload.tine), url);
    prepare(&workload);
    measure(&workload);
    tine_close(workload.tine);
    tine_arena_close(workload.arena);
    return 0;
}
