// Calls for tests of the client.

#include "steps.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Tine *open_with(const char *url, TineOpenOptions options)
{
    Tine *tine = NULL;
    TineStatus status;
    int code = tine_open_with(url, &options, &status, &tine);
    if (code) printf("%s: %s\n", status.reason, status.message);
    CHECK_EQ(code, 0);
    return tine;
}

Tine *open_ok(const char *url)
{
    return open_with(url, (TineOpenOptions){.token = NULL});
}

int ask(Tine *tine, const TineCallOptions *options, const char *text,
        char out_answer[ANSWER_BYTES_MAX])
{
    Tine__V1__LatestUserMessageIdRequest request = TINE__V1__LATEST_USER_MESSAGE_ID_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)text;
    Tine__V1__LatestUserMessageIdResponse *response = NULL;
    *out_answer = '\0';
    int code = tine_latest_user_message_id(tine, options, &request, &response);
    CHECK((code == 0) == (response != NULL));
    if (code) return code;
    snprintf(out_answer, ANSWER_BYTES_MAX, "%s", response->message_id);
    tine__v1__latest_user_message_id_response__free_unpacked(response, NULL);
    return code;
}

int ask_plain(Tine *tine, const char *text)
{
    char answer[ANSWER_BYTES_MAX];
    return ask(tine, NULL, text, answer);
}

void ask_ok(Tine *tine, const char *text)
{
    char answer[ANSWER_BYTES_MAX];
    TineStatus status;
    int code = ask(tine, &(TineCallOptions){.out_status = &status}, text, answer);
    if (code) printf("%s: %s\n", status.reason, status.message);
    CHECK_EQ(code, 0);
    CHECK_STR(answer, text);
}

int publish(Tine *tine, const TineCallOptions *options, const char *type, uint64_t *out_sequence)
{
    Tine__V1__PublishEventRequest request = TINE__V1__PUBLISH_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    Tine__V1__PublishEventResponse *response = NULL;
    *out_sequence = 0;
    int code = tine_publish_event(tine, options, &request, &response);
    if (code) return code;
    *out_sequence = response->sequence;
    tine__v1__publish_event_response__free_unpacked(response, NULL);
    return code;
}

static void must(int code, const TineStatus *status)
{
    if (code) printf("%s: %s\n", status->reason, status->message);
    CHECK_EQ(code, 0);
}

void publish_in(Tine *tine, const char *session, const char *type)
{
    Tine__V1__PublishEventRequest request = TINE__V1__PUBLISH_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    request.session_id = (char *)(uintptr_t)(session ? session : "");
    Tine__V1__PublishEventResponse *response = NULL;
    TineStatus status;
    must(tine_publish_event(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    tine__v1__publish_event_response__free_unpacked(response, NULL);
}

void broadcast_in(Tine *tine, const char *session, const char *type, const char *data_json)
{
    Tine__V1__BroadcastEventRequest request = TINE__V1__BROADCAST_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    request.session_id = (char *)(uintptr_t)(session ? session : "");
    request.data_json = (char *)(uintptr_t)(data_json ? data_json : "");
    Tine__V1__BroadcastEventResponse *response = NULL;
    TineStatus status;
    must(tine_broadcast_event(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    tine__v1__broadcast_event_response__free_unpacked(response, NULL);
}

static Id id_of(const char *text)
{
    Id id;
    snprintf(id.text, sizeof(id.text), "%s", text);
    return id;
}

Id session_new(Tine *tine)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "claude";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = "/project";
    session.model = &model;
    Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    Tine__V1__CreateSessionResponse *response;
    TineStatus status;
    must(tine_create_session(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    Id id = id_of(response->session->id);
    tine__v1__create_session_response__free_unpacked(response, NULL);
    return id;
}

Id append_text(Tine *tine, const char *session, const char *text)
{
    Tine__V1__Text content = TINE__V1__TEXT__INIT;
    content.text = (char *)(uintptr_t)text;
    Tine__V1__Part part = TINE__V1__PART__INIT, *parts[] = {&part};
    part.kind_case = TINE__V1__PART__KIND_TEXT;
    part.text = &content;
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    message.role = TINE__V1__ROLE__ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    Tine__V1__AppendMessageResponse *response;
    TineStatus status;
    must(tine_append_message(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    Id id = id_of(response->receipt->id);
    tine__v1__append_message_response__free_unpacked(response, NULL);
    return id;
}

void purge(Tine *tine, const char *session)
{
    Tine__V1__PurgeSessionRequest request = TINE__V1__PURGE_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    Tine__V1__PurgeSessionResponse *response;
    TineStatus status;
    must(tine_purge_session(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    tine__v1__purge_session_response__free_unpacked(response, NULL);
}

unsigned message_count(Tine *tine, const char *session)
{
    Tine__V1__GetSessionRequest request = TINE__V1__GET_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    Tine__V1__GetSessionResponse *response;
    TineStatus status;
    must(tine_get_session(tine, &(TineCallOptions){.out_status = &status}, &request, &response),
         &status);
    unsigned count = (unsigned)response->session->message_count;
    tine__v1__get_session_response__free_unpacked(response, NULL);
    return count;
}

const char *history_of(Tine *tine, const char *session)
{
    static char texts[4096];
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    Tine__V1__MessagesForSessionResponse *response;
    TineStatus status;
    must(tine_messages_for_session(tine, &(TineCallOptions){.out_status = &status}, &request,
                                   &response),
         &status);
    size_t size = 0;
    for (size_t i = 0; i < response->n_messages; i++) {
        const char *text = response->messages[i]->parts[0]->text->text;
        int added = snprintf(texts + size, sizeof(texts) - size, "%s%s", i ? " " : "", text);
        CHECK(added >= 0 && size + (size_t)added < sizeof(texts));
        size += (size_t)added;
    }
    if (response->n_messages == 0) texts[0] = '\0';
    tine__v1__messages_for_session_response__free_unpacked(response, NULL);
    return texts;
}

typedef struct Job {
    Worker worker;
    void (*run)(const Worker *worker);
} Job;

static void *job_main(void *context)
{
    Job *job = context;
    job->run(&job->worker);
    return NULL;
}

void in_threads(unsigned count, void (*run)(const Worker *worker), void *context)
{
    pthread_t *threads = calloc(count, sizeof(*threads));
    Job *jobs = calloc(count, sizeof(*jobs));
    CHECK(threads && jobs);
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (Job){.worker = {i, context}, .run = run};
        CHECK_EQ(pthread_create(&threads[i], NULL, job_main, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    free(threads);
    free(jobs);
}
