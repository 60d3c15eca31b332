// Writes on sessions from many threads at once: each is whole, none is lost.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_steps.h"

enum { THREADS = 8 };

typedef struct Worker {
    Tine *tine;
    const char *session; // that all work on
    int count;           // of calls to make
    int done;            // that succeeded
    char (*ids)[27];     // of the sessions it made
    char (*slugs)[40];
} Worker;

static void run_workers(Fixture *f, Worker workers[THREADS], const char *session, int count,
                        void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.tine = f->tine,
                              .session = session,
                              .count = count,
                              .ids = calloc((size_t)count, sizeof(*workers[i].ids)),
                              .slugs = calloc((size_t)count, sizeof(*workers[i].slugs))};
        CHECK(workers[i].ids && workers[i].slugs);
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void free_workers(Worker workers[THREADS])
{
    for (int i = 0; i < THREADS; i++) {
        free(workers[i].ids);
        free(workers[i].slugs);
    }
}

// The texts of all workers, sorted; checks that no two are equal.
static void check_unique(const char **texts, size_t count,
                         int (*compare)(const void *, const void *))
{
    qsort(texts, count, sizeof(*texts), compare);
    for (size_t i = 1; i < count; i++)
        CHECK(strcmp(texts[i - 1], texts[i]) < 0);
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void *create_sessions(void *context)
{
    Worker *worker = context;
    for (int i = 0; i < worker->count; i++) {
        ModelRef model = {.provider = "anthropic", .name = "model-1"};
        NewSession wanted = {.slug = "s", .project_dir = "/project", .model = &model};
        CreateSessionRequest request = {.base.descriptor =
                                            &tine__v1__create_session_request__descriptor,
                                        .session = &wanted,
                                        .slug_policy = SLUG_POLICY_UNIQUE_SUFFIX};
        fixture_fill(&request.base);
        CreateSessionResponse *response;
        if (tine_create_session(worker->tine, NULL, &request, &response)) continue;
        worker->done++;
        memcpy(worker->ids[i], response->session->id, 27);
        snprintf(worker->slugs[i], sizeof(*worker->slugs), "%s", response->session->slug);
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    return NULL;
}

TEST(sessions_made_at_once_have_unique_ids_and_slugs)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    enum { COUNT = 100 };
    static const char *ids[THREADS * COUNT], *slugs[THREADS * COUNT];
    Worker workers[THREADS];
    run_workers(f, workers, NULL, COUNT, create_sessions);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(workers[i].done, COUNT);
        for (int j = 0; j < COUNT; j++) {
            if (j) CHECK(strcmp(workers[i].ids[j - 1], workers[i].ids[j]) < 0);
            ids[i * COUNT + j] = workers[i].ids[j];
            slugs[i * COUNT + j] = workers[i].slugs[j];
        }
    }
    check_unique(ids, THREADS * COUNT, compare_texts);
    check_unique(slugs, THREADS * COUNT, compare_texts);
    free_workers(workers);
}

static void *propagate(void *context)
{
    Worker *worker = context;
    for (int i = 0; i < worker->count; i++) {
        Totals delta = {.input_tokens = 1};
        PropagateTotalsRequest request = {.base.descriptor =
                                              &tine__v1__propagate_totals_request__descriptor,
                                          .session_id = CHARS(worker->session),
                                          .delta = &delta};
        fixture_fill(&request.base);
        PropagateTotalsResponse *response;
        if (tine_propagate_totals(worker->tine, NULL, &request, &response)) continue;
        worker->done++;
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    return NULL;
}

TEST(totals_propagated_at_once_are_all_counted)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    Worker workers[THREADS];
    run_workers(f, workers, sub, 100, propagate);
    CHECK_EQ(get_ok(f, sub)->totals->input_tokens, THREADS * 100);
    CHECK_EQ(get_ok(f, root)->totals->input_tokens, THREADS * 100);
    free_workers(workers);
}

static void *append_after_expected_head(void *context)
{
    Worker *worker = context;
    for (int i = 0; i < worker->count; i++) {
        NewMessage message = {.role = ROLE_USER};
        AppendMessageRequest request = {
            .base.descriptor = &tine__v1__append_message_request__descriptor,
            .session_id = CHARS(worker->session),
            .expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
            .message = &message}; // present and empty: only the very first may succeed
        fixture_fill(&request.base);
        AppendMessageResponse *response;
        TineStatus status;
        TineCallOptions options = {.out_status = &status};
        if (tine_append_message(worker->tine, &options, &request, &response)) {
            CHECK_STR(status.reason, "HEAD_MOVED");
            continue;
        }
        worker->done++;
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    return NULL;
}

TEST(of_many_appends_that_expect_one_head_one_succeeds)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Worker workers[THREADS];
    run_workers(f, workers, s, 20, append_after_expected_head);
    int done = 0;
    for (int i = 0; i < THREADS; i++)
        done += workers[i].done;
    CHECK_EQ(done, 1);
    CHECK_EQ(get_ok(f, s)->entry_count, 1);
    free_workers(workers);
}

static void *create_with_one_operation(void *context)
{
    Worker *worker = context;
    for (int i = 0; i < worker->count; i++) {
        ModelRef model = {.provider = "anthropic", .name = "model-1"};
        NewSession wanted = {.project_dir = "/project", .model = &model};
        CreateSessionRequest request = {
            .base.descriptor = &tine__v1__create_session_request__descriptor, .session = &wanted};
        fixture_fill(&request.base);
        CreateSessionResponse *response;
        TineCallOptions options = {.operation_id = "op"};
        if (tine_create_session(worker->tine, &options, &request, &response)) continue;
        worker->done++;
        memcpy(worker->ids[i], response->session->id, 27);
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    return NULL;
}

TEST(one_operation_sent_by_many_at_once_runs_once)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Worker workers[THREADS];
    run_workers(f, workers, NULL, 20, create_with_one_operation);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(workers[i].done, 20);
        for (int j = 0; j < 20; j++)
            CHECK_STR(workers[i].ids[j], workers[0].ids[0]);
    }
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.limit = 0})->n_sessions, 1);
    free_workers(workers);
}

// Makes forks of one session and purges each again, reading through them in between.
static void *fork_and_purge(void *context)
{
    Worker *worker = context;
    for (int i = 0; i < worker->count; i++) {
        ForkSessionRequest fork = {.base.descriptor = &tine__v1__fork_session_request__descriptor,
                                   .session_id = CHARS(worker->session),
                                   .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                                   .at_head = true};
        fixture_fill(&fork.base);
        ForkSessionResponse *forked;
        if (tine_fork_session(worker->tine, NULL, &fork, &forked)) continue;
        MessagesForSessionRequest read = {.base.descriptor =
                                              &tine__v1__messages_for_session_request__descriptor,
                                          .session_id = forked->session->id};
        fixture_fill(&read.base);
        MessagesForSessionResponse *history;
        CHECK_EQ(tine_messages_for_session(worker->tine, NULL, &read, &history), 0);
        CHECK_EQ(history->n_messages, 10);
        protobuf_c_message_free_unpacked(&history->base, NULL);
        PurgeSessionRequest purge = {.base.descriptor =
                                         &tine__v1__purge_session_request__descriptor,
                                     .session_id = forked->session->id};
        fixture_fill(&purge.base);
        PurgeSessionResponse *purged;
        if (tine_purge_session(worker->tine, NULL, &purge, &purged) == 0) {
            worker->done++;
            protobuf_c_message_free_unpacked(&purged->base, NULL);
        }
        protobuf_c_message_free_unpacked(&forked->base, NULL);
    }
    return NULL;
}

TEST(forks_made_read_and_purged_at_once_leave_the_source_alone)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    for (int i = 0; i < 10; i++)
        append_ok(f, s, ROLE_USER, "m");
    Worker workers[THREADS];
    run_workers(f, workers, s, 50, fork_and_purge);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(workers[i].done, 50);
    purges_settle(f);
    CHECK_EQ(table_rows(f, "readers"), 0);
    CHECK_EQ(table_rows(f, "messages"), 10);
    CHECK_EQ(table_rows(f, "sessions"), 2);
    free_workers(workers);
}
