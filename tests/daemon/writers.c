// Writers through libtine.

#include "writers.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "tine_calls.h"

enum { NUMBER_BYTES = 12 };

static const char REFUSED_REASON[] = "STORE_FULL";

static void fail(const TineStatus *status)
{
    printf("%d %s: %s\n", status->code, status->reason, status->message);
    CHECK(false);
}

static void make_session(ClientWriter *writer)
{
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "model-1";
    session.model = &model;
    session.project_dir = "/project";
    session.kind = SESSION_KIND_PRIMARY;
    request.session = &session;
    TineStatus status;
    CreateSessionResponse *response;
    TineCallOptions options = {.out_status = &status};
    if (tine_create_session(writer->tine, &options, &request, &response)) fail(&status);
    snprintf(writer->session, sizeof(IdText), "%s", response->session->id);
    engine_free(response);
}

// Writes one message. False: there was no space.
static bool write_one(ClientWriter *writer, char *text)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    Part part = PART__INIT, *parts[] = {&part};
    Text content = TEXT__INIT;
    content.text = text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.parts = parts;
    message.n_parts = 1;
    request.session_id = writer->session;
    request.message = &message;
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    AppendMessageResponse *response;
    int code = tine_append_message(writer->tine, &options, &request, &response);
    if (!code) {
        engine_free(response);
        return true;
    }
    bool is_full = code == STATUS_RESOURCE_EXHAUSTED && strcmp(status.reason, REFUSED_REASON) == 0;
    if (!is_full || !writer->writers->is_full_allowed) fail(&status);
    return false;
}

static void *write_on(void *context)
{
    ClientWriter *writer = context;
    Writers *writers = writer->writers;
    char *text = malloc(writers->text_bytes + NUMBER_BYTES);
    CHECK(text != NULL);
    memset(text, ' ', writers->text_bytes + NUMBER_BYTES);
    text[writers->text_bytes + NUMBER_BYTES - 1] = '\0';
    while (!writers->is_over) {
        unsigned number = writer->acknowledged;
        int size = snprintf(text, NUMBER_BYTES, "%u", number);
        if (writers->text_bytes > 0) text[size] = ' ';
        writer->begun = number + 1;
        if (write_one(writer, text)) {
            writer->acknowledged++;
        } else {
            writer->refused++;
        }
    }
    free(text);
    return NULL;
}

void writers_start(Writers *writers, const char *socket, size_t count, size_t text_bytes,
                   bool is_full_allowed)
{
    memset(writers, 0, sizeof(*writers));
    writers->count = count;
    writers->text_bytes = text_bytes;
    writers->is_full_allowed = is_full_allowed;
    CHECK(count <= WRITERS_MAX);
    char url[160];
    snprintf(url, sizeof(url), "ipc://%s", socket);
    TineOpenOptions options = {.retry_ms = HARNESS_PATIENCE_MS};
    for (size_t i = 0; i < count; i++) {
        ClientWriter *writer = &writers->list[i];
        writer->writers = writers;
        TineStatus status;
        if (tine_open_with(url, &options, &status, &writer->tine)) fail(&status);
        make_session(writer);
    }
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&writers->list[i].thread, NULL, write_on, &writers->list[i]), 0);
}

uint64_t writers_acknowledged(Writers *writers)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < writers->count; i++)
        sum += writers->list[i].acknowledged;
    return sum;
}

uint64_t writers_refused(Writers *writers)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < writers->count; i++)
        sum += writers->list[i].refused;
    return sum;
}

void writers_wait_acknowledged(Writers *writers, uint64_t more)
{
    uint64_t wanted = writers_acknowledged(writers) + more;
    while (writers_acknowledged(writers) < wanted)
        sched_yield();
}

void writers_wait_refused(Writers *writers, uint64_t more)
{
    uint64_t wanted = writers_refused(writers) + more;
    while (writers_refused(writers) < wanted)
        sched_yield();
}

void writers_stop(Writers *writers)
{
    writers->is_over = true;
    for (size_t i = 0; i < writers->count; i++) {
        pthread_join(writers->list[i].thread, NULL);
        tine_close(writers->list[i].tine);
    }
}

// What a writer's session holds: the numbers from 0 on, each once. Returns how many.
static unsigned check_session(Engine *engine, const char *session)
{
    unsigned count = 0;
    char cursor[CURSOR_BYTES_MAX + 1] = "";
    do {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = (char *)(uintptr_t)session;
        request.cursor = cursor;
        MessagesForSessionResponse *response;
        CHECK_EQ(engine_call(engine, METHOD_MESSAGES_FOR_SESSION, &request, NULL, &response),
                 ERROR_NONE);
        for (size_t i = 0; i < response->n_messages; i++) {
            CHECK_EQ(response->messages[i]->n_parts, 1);
            const char *text = response->messages[i]->parts[0]->text->text;
            CHECK_EQ(strtoul(text, NULL, 10), count);
            count++;
        }
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        engine_free(response);
    } while (*cursor);
    return count;
}

void writers_check(Writers *writers, const char *data)
{
    unsigned acknowledged[WRITERS_MAX];
    for (size_t i = 0; i < writers->count; i++)
        acknowledged[i] = writers->list[i].acknowledged;
    EngineOptions options = {.store = {.directory = data}};
    ErrorDetail detail = {{0}};
    Engine *engine;
    Error error = engine_open(&options, &detail, &engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    CHECK_CLEAN(engine);
    for (size_t i = 0; i < writers->count; i++) {
        unsigned count = check_session(engine, writers->list[i].session);
        CHECK(count >= acknowledged[i]);
        CHECK(count <= writers->list[i].begun);
    }
    engine_close(engine);
}
